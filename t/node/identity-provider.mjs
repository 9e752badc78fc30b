// An identity provider that speaks OpenID Connect, the certified oidc-provider, with the forms that it has
// for development: any name and password sign in, and the name is also the email address.
//
//   node t/node/identity-provider.mjs PORT CLIENT SECRET REDIRECT LOGGED_OUT
//
// Writes a line once it listens on PORT of 127.0.0.1, and ends when its input does.
import { Provider } from 'oidc-provider';

// It warns that its keys, its memory and its forms are for development, which they are.
console.warn = () => {};
console.info = () => {};

const [port, client, secret, redirect, loggedOut] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{
        client_id: client,
        client_secret: secret,
        redirect_uris: [redirect],
        post_logout_redirect_uris: [loggedOut],
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    findAccount: (context, id) => ({
        accountId: id,
        claims: () => ({ sub: id, email: id, email_verified: true }),
    }),
    pkce: { required: () => false },
});

provider.listen(Number(port), '127.0.0.1', () => process.stdout.write('listens\n'));
process.stdin.on('end', () => process.exit()).resume();
