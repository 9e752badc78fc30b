# What a download costs, by the bytes delivered, when they come from an object store: the same as
# from the folder (MDL::Metering).
#
# once: metering.t has the same from the folder on both databases
use strict;
use warnings;

use MDL::Metering;
use MDL::Objects;
use MDL::Swift;
use MDL::Test;
use Test::More;

my ($server, $shop, $file) = meters_under('event', object_store(MDL::Swift->new));
ok !-e blob_file($file), 'the file is in an object';

done_testing;
