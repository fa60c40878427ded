// A certified OpenID Connect provider with people from the environment; its development pages take any password.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const people = JSON.parse(process.env.PEOPLE);
const port = Number(process.env.PORT);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'schemadesk',
      client_secret: process.env.CLIENT_SECRET,
      redirect_uris: [process.env.REDIRECT_URI],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username', 'name', 'groups'], email: ['email', 'email_verified'] },
  pkce: { required: () => true },
  cookies: { keys: ['tests'] },
  findAccount: (_context, id) => (people[id] ? { accountId: id, claims: () => ({ sub: id, ...people[id] }) } : undefined),
});
createServer(provider.callback()).listen(port, '127.0.0.1', () => console.log('ready'));
