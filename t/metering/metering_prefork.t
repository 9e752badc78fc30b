# What t/metering/metering.t says of the event MPM, under prefork.
#
# once: the processing model makes no difference to the database
use strict;
use warnings;

use Test::More;

use MDL::Metering;

my ($server) = meters_under('prefork');
$server->stop;
done_testing();
