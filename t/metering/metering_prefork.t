# What t/metering/metering.t says of the event MPM, under prefork.
#
# once: a processing model and a database don't know of each other
use strict;
use warnings;

use Test::More;

use MDL::Metering;

my ($server) = meters_under('prefork');
$server->stop;
done_testing();
