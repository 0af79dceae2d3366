"""The same world as the tests of the authorization server: a real application over a real store."""

from tests.oauth.conftest import fresh, keys_folder, make_world

__all__ = ["fresh", "keys_folder", "make_world"]
