# Every other operation that writes (MDL::Writes): files, uploads, jobs, categories, packs, links,
# webhooks. t/api/shop.t has the logo, whose body is not JSON.
#
# both: each write waits for other locks
# long: every operation that writes
use strict;
use warnings;

use MDL::Writes;
use Test::More;

try_writes(qr{^/(?!(?:orders|customers|mappings|license-key-tags|shop/logo)\b)});
done_testing();
