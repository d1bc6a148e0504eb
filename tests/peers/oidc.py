"""A small OpenID Connect provider on the loopback interface, speaking the real protocol: discovery,
JWKS with RS256, the code flow with PKCE, nonce and state, user info. What it does wrong is asked of
it by name."""

import base64
import hashlib
import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID = "tandem-panel"
CLIENT_SECRET = "client-secret-of-the-panel"
Claims = dict[str, Any]


@dataclass
class Grant:
    """What a code stands for, once."""

    redirect_uri: str
    challenge: str
    nonce: str


@dataclass
class OidcProvider:
    person: Claims = field(default_factory=lambda: {"sub": "u-1", "preferred_username": "ada"})
    """Who is sitting in front of it, with the claims it tells of them."""
    in_userinfo: Claims = field(default_factory=dict)
    """Told there alone."""
    spoil: Callable[[Claims], Claims] = dict
    """Done to the claims of a token before it is signed."""
    forged: bool = False
    """Signs with a key that it does not publish, under the name of one that it does."""
    algorithm: str = "RS256"
    document: Claims = field(default_factory=dict)
    """Put over its discovery document."""
    moved: str = ""
    """Where its discovery document sends to."""
    issuer: str = ""
    asked: list[str] = field(default_factory=list)
    grants: dict[str, Grant] = field(default_factory=dict)
    tokens: dict[str, Claims] = field(default_factory=dict)

    def discovery(self) -> Claims:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid", "profile", "email"],
            **self.document,
        }

    def jwks(self) -> Claims:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(_key(0).public_key()))
        return {"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """The address that the browser is sent back to."""
        assert query["client_id"] == CLIENT_ID
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.grants[code] = Grant(query["redirect_uri"], query["code_challenge"], query["nonce"])
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def exchange(self, form: dict[str, str], authorization: str) -> Claims | None:
        """Tokens for a code, or nothing for whoever is not entitled to them."""
        grant = self.grants.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        entitled = (
            grant is not None
            and _client_of(form, authorization) == (CLIENT_ID, CLIENT_SECRET)
            and form.get("redirect_uri") == grant.redirect_uri
            and form.get("grant_type") == "authorization_code"
            and challenge == grant.challenge
        )
        if not entitled or grant is None:
            return None
        access = secrets.token_urlsafe(16)
        self.tokens[access] = {"sub": self.person["sub"], **self.in_userinfo}
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self._token(grant.nonce),
        }

    def _token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        claims = self.spoil({**claims, "nonce": nonce, **self.person})
        if self.algorithm == "HS256":
            key: Any = "a-shared-secret-that-is-long-enough-for-it"
        else:
            key = _key(1 if self.forged else 0)
        headers = {"kid": "k1"}
        if self.algorithm == "none":
            return jwt.encode(claims, "", "none", headers=headers)
        return jwt.encode(claims, key, self.algorithm, headers=headers)


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    """Of the process: making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _client_of(form: dict[str, str], authorization: str) -> tuple[str, str]:
    if authorization.startswith("Basic "):
        name, _, password = base64.b64decode(authorization[6:]).decode().partition(":")
        return unquote(name), unquote(password)
    return form.get("client_id", ""), form.get("client_secret", "")


@contextmanager
def running(provider: OidcProvider, certificate: Path | None = None) -> Iterator[OidcProvider]:
    """`certificate`: a file with its own and its key, for TLS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(provider))
    scheme = "http"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    provider.issuer = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _handler_of(provider: OidcProvider) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"provider": provider})


class _Handler(BaseHTTPRequestHandler):
    provider: OidcProvider

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.provider.asked.append(url.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        match url.path:
            case "/.well-known/openid-configuration" if self.provider.moved:
                self._redirect(self.provider.moved)
            case "/.well-known/openid-configuration":
                self._json(self.provider.discovery())
            case "/jwks":
                self._json(self.provider.jwks())
            case "/authorize":
                self._redirect(self.provider.authorize(query))
            case "/userinfo":
                self._userinfo()
            case _:
                self._json({"error": "not_found"}, 404)

    def _userinfo(self) -> None:
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        found = self.provider.tokens.get(bearer)
        self._json(found or {"error": "invalid_token"}, 200 if found else 401)

    def do_POST(self) -> None:
        self.provider.asked.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        found = self.provider.exchange(form, self.headers.get("Authorization", ""))
        self._json(found or {"error": "invalid_grant"}, 200 if found else 400)

    def _redirect(self, url: str) -> None:
        self.send_response(302)
        self.send_header("Location", url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, content: Claims, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""
