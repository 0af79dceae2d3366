"""Renders a template into a page, with its words, its stylesheet, and the headers that isolate it (oauth.md 3.1)."""

from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route

from auth.policy import Policy
from handlers.oauth.cookies import sent_cookies
from handlers.oauth.languages import Words, words_for
from handlers.oauth.mistakes import Mistake
from handlers.web.fixed_files import fixed_file, stylesheet
from handlers.web.outermost import UnknownPage

NAME_SHOWN_MAX = 50  # two lines of a heading on a phone
STYLE_PATH = "/oauth/style.css"
ICON_PATH = "/oauth/icon.svg"
SCRIPT_PATH = "/oauth/passkeys.js"


def render(
    policy: Policy,
    template: str,
    words: Words,
    *,
    status: int,
    form_action: str = "",
    is_scripted: bool = False,
    **values: Any,
) -> Response:
    """A page made of a template, with the headers that isolate it; needs no session. `form_action` is a further source
    expression of where its form may lead; `is_scripted` lets the passkeys' script run on it."""
    html = (
        _templates()
        .get_template(template)
        .render(
            t=words,
            style=policy.auth_path + STYLE_PATH,
            icon=policy.auth_path + ICON_PATH,
            account_address=policy.auth_path + "/account",
            login_address=policy.auth_path + "/oauth/login",
            passkey_address=policy.auth_path + "/oauth/passkey",
            provider_address=policy.auth_path + "/oauth/oidc",
            page_address=policy.public_url + "/",
            script=policy.auth_path + SCRIPT_PATH if is_scripted else "",
            **values,
        )
    )
    return Response(
        html, status_code=status, media_type="text/html", headers=page_headers(form_action, is_scripted=is_scripted)
    )


def unknown_address(policy: Policy) -> UnknownPage:
    """A function that renders the page (404) for an address that does not exist, in the person's language."""
    mistake = Mistake("unknown_address", status=404)

    def page(headers: Headers) -> Response:
        words = words_for(headers.get("accept-language", ""), sent_cookies(headers))
        return render(policy, "mistake.html", words, status=mistake.status, mistake=mistake)

    return page


def page_headers(form_action: str, *, is_scripted: bool = False) -> dict[str, str]:
    """The headers of every page; `form_action` is a further source expression of where its form may lead, empty for
    none, and `is_scripted` lets the passkeys' script run."""
    scripts = "script-src 'self'; " if is_scripted else ""
    return {
        "content-security-policy": (
            f"default-src 'none'; {scripts}style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
            f"form-action 'self'{' ' + form_action if form_action else ''}"
        ),
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }


def file_routes(policy: Policy) -> list[Route]:
    """The routes, under the path of `auth_url`, that serve the stylesheet, the icon and the passkeys' script of all
    pages, as read when the server starts; clients may keep them for five minutes."""
    folder = resources.files("handlers.oauth") / "static"
    files = (
        (STYLE_PATH, stylesheet(folder / "oauth.css")),
        (ICON_PATH, (folder / "oauth.svg").read_bytes()),
        (SCRIPT_PATH, (folder / "passkeys.js").read_bytes()),
    )
    headers = {"cache-control": "public, max-age=300"}
    return [fixed_file(policy.served_path + path, content, headers) for path, content in files]


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("handlers.oauth", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clamped"] = clamp_name
    return environment


def clamp_name(name: str) -> str:
    """A name that a stranger chose, cut to 50 characters with an ellipsis at the end where it is longer."""
    return name if len(name) <= NAME_SHOWN_MAX else f"{name[: NAME_SHOWN_MAX - 1].rstrip()}…"
