"""A server of MCP that wants a sign-in, with its own authorization server: the SDK's, on one port.

`python mcp_auth_server.py PORT DIRECTORY [refuse|elsewhere]`. Whoever asks is signed in at once, or refused
with `refuse`; with `elsewhere` the tokens are to be had at an address without https. Of `DIRECTORY`,
`lifetime` has the seconds that a token is said to live, `forget` makes it forget the tokens that it gave, and
`no-refresh` gives no new ones. Each request is a line of `requests`: path, and what it has of the headers
`authorization` and `x-key`; each token is a line of `tokens`.
"""

import secrets
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

PORT, DIRECTORY = int(sys.argv[1]), Path(sys.argv[2])
MODE = sys.argv[3] if len(sys.argv) > 3 else ""
ORIGIN = f"http://127.0.0.1:{PORT}"


def note(file: str, text: str) -> None:
    with (DIRECTORY / file).open("a", encoding="utf-8") as lines:
        lines.write(f"{text}\n")


def lifetime() -> int:
    path = DIRECTORY / "lifetime"
    return int(path.read_text()) if path.exists() else 3600


class Provider:
    """Clients, codes and tokens in memory."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        uri = str(params.redirect_uri)
        if MODE == "refuse":
            return construct_redirect_uri(uri, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(uri, code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: Any, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: Any, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if (DIRECTORY / "no-refresh").exists():
            raise TokenError("invalid_grant")
        del self.refresh[refresh_token.token]
        return self._tokens(client.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        if (DIRECTORY / "forget").exists():
            (DIRECTORY / "forget").unlink()
            self.access.clear()
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        pass

    def _tokens(self, client_id: str) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=[])
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=[])
        note("tokens", f"{access}\n{refresh}")
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=lifetime())


settings: Any = {
    "issuer_url": "http://example.com" if MODE == "elsewhere" else ORIGIN,
    "resource_server_url": f"{ORIGIN}/mcp",
    "client_registration_options": ClientRegistrationOptions(enabled=True),
    "validate_token_resource": False,
}
provider: Any = Provider()
if MODE == "elsewhere":
    server = MCPServer("remote", token_verifier=provider, auth=AuthSettings(**settings))
    provider.verify_token = provider.load_access_token
else:
    server = MCPServer("remote", auth_server_provider=provider, auth=AuthSettings(**settings))


@server.tool()
def alpha(text: str) -> str:
    """Adds two numbers."""
    return text


app = server.streamable_http_app()


async def noting(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        note("requests", f"{scope['path']} {headers.get('authorization', '-')} {headers.get('x-key', '-')}")
    await app(scope, receive, send)


uvicorn.run(noting, host="127.0.0.1", port=PORT, log_level="error")
