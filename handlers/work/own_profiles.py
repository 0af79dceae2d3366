"""The CSV profiles that operators add (files of the data folder or, where several machines share a store, documents in
it, so that all machines read a file alike), and the layouts that single users keep."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from analytics.messages import Message
from connectors.bank_csv.profile import (
    PROFILES_MAX,
    Profile,
    ProfileError,
    chosen_profile,
    chosen_texts,
    layout_id,
    load_profiles,
    parse_profile,
    parse_profiles,
)
from storage import documents, kept_layouts
from storage.database import NOBODY, Session, Store
from storage.kept_layouts import KeptLayout

PROFILES_FOLDER = "csv-profiles"
KEPT_MAX = 100  # layouts of one user
TOO_MANY_KEPT = Message("{limit} layouts are kept already. Remove one of them first.", limit=KEPT_MAX)


class ChosenLayout(Struct, frozen=True):
    """How a person wants a file to be read: `text` is one profile, or a list of profiles for the files of a ZIP
    container; `is_kept` says whether later files with the same columns are read this way too."""

    text: str
    is_kept: bool

    @property
    def profiles(self) -> list[Profile]:
        """The profiles parsed from the text; raises ProfileError."""
        return [chosen_profile(each) for each in chosen_texts(self.text)]

    def keep(
        self, session: Session, user_id: str, *, file_name: str, account_ids: Sequence[str], now: datetime
    ) -> None:
        """Store the layout for this user's later files, along with the account if the file was about exactly one,
        replacing a kept layout for the same columns. Raises ProfileError for more than KEPT_MAX layouts of a user."""
        account_id = account_ids[0] if len(account_ids) == 1 else None
        for text, profile in zip(chosen_texts(self.text), self.profiles, strict=True):
            layout = KeptLayout(
                id=layout_id(profile), file_name=file_name, profile=text, account_id=account_id, kept_at=now
            )
            if len({layout.id, *(each.id for each in kept_layouts.of_user(session, user_id))}) > KEPT_MAX:
                raise ProfileError(TOO_MANY_KEPT)
            kept_layouts.keep(session, user_id, layout)


class OwnProfiles(Struct, frozen=True):
    """The operator's CSV profiles of a store that no other process has open: files in the data folder, by the names of
    the files."""

    data_dir: Path
    store: Store

    @property
    def folder(self) -> Path:
        """The folder of the profiles, which may not exist yet."""
        return self.data_dir / PROFILES_FOLDER

    @property
    def is_unread(self) -> bool:
        """Whether the data folder contains profiles that are not used; here never."""
        return False

    def read(self) -> Sequence[Profile]:
        """All profiles of the store, ordered by file name; raises ProfileError for an invalid one."""
        return profiles_of_folder(self.data_dir)

    def of_user(self, user_id: str) -> Sequence[Profile]:
        """The layouts that this user keeps, followed by the profiles of the store; raises ProfileError for an invalid
        one."""
        kept = kept_layouts.of_user(self.store.of(user_id), user_id)
        return (*map(kept_profile, kept), *self.read())

    def names(self) -> set[str]:
        """The file names of the store's profiles."""
        return {path.name for path in self.folder.glob("*.json")}

    def keep(self, name: str, text: str, *, now: datetime) -> None:
        """Add a profile, or replace the one with the same file name. Raises ProfileError for an invalid one and beyond
        PROFILES_MAX, and Conflict where another process replaces it at the same moment."""
        if not (name.endswith(".json") and name.isprintable()):
            raise ProfileError(f"{name!r} is no name of a profile: it has to end in .json")
        parse_profiles({name: text})
        if len(self.names() | {name}) > PROFILES_MAX:
            raise ProfileError(f"more than {PROFILES_MAX} profiles")
        self._write(name, text, now)

    def remove(self, name: str) -> None:
        """Delete the profile with this file name, which has to exist (FileNotFoundError)."""
        (self.folder / name).unlink()

    def _write(self, name: str, text: str, now: datetime) -> None:  # noqa: ARG002 - a file knows its own time
        self.folder.mkdir(mode=0o700, exist_ok=True)
        unfinished = self.folder / f"{name}.part"
        unfinished.write_text(text, "utf-8")
        unfinished.replace(self.folder / name)


class SharedProfiles(OwnProfiles, frozen=True):
    """The operator's CSV profiles of a store that several machines share: documents in it, so that all read a file
    alike."""

    @property
    def is_unread(self) -> bool:
        """Whether the data folder contains profiles, which are not used here."""
        return any(self.folder.glob("*.json"))

    def read(self) -> Sequence[Profile]:
        """All profiles of the store, ordered by file name; raises ProfileError for an invalid one."""
        return parse_profiles(documents.below(self.store.of(NOBODY), PROFILES_FOLDER))

    def names(self) -> set[str]:
        """The file names of the store's profiles."""
        return set(documents.below(self.store.of(NOBODY), PROFILES_FOLDER))

    def remove(self, name: str) -> None:
        """Delete the profile with this file name, if there is one."""
        documents.remove(self.store.for_everybody(), f"{PROFILES_FOLDER}/{name}")

    def _write(self, name: str, text: str, now: datetime) -> None:
        document, everybody = f"{PROFILES_FOLDER}/{name}", self.store.for_everybody()
        documents.replace(everybody, document, text, before=documents.find(everybody, document), now=now)


def kept_profile(layout: KeptLayout) -> Profile:
    """The profile by which files of the user who keeps this layout are read; raises ProfileError."""
    profile = parse_profile(layout.profile, name=layout.id)
    return replace(profile, standing="kept", account=layout.account_id)


def profiles_of_folder(data_dir: Path) -> Sequence[Profile]:
    """The profiles in the data folder of a store on this machine, also while another process has that store open;
    raises ProfileError for an invalid one."""
    folder = data_dir / PROFILES_FOLDER
    return load_profiles(folder) if folder.is_dir() else ()
