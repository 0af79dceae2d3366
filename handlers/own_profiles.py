"""The profiles that people write for CSV files: files of the data folder, or, where several machines share a store,
documents of that, so that all of them read one file alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connectors.bank_csv.profile import PROFILES_MAX, Profile, ProfileError, load_profiles, parse_profiles
from storage import documents
from storage.database import Database

PROFILES_FOLDER = "csv-profiles"


@dataclass(frozen=True, slots=True)
class OwnProfiles:
    """Those of one store, by the names of their files."""

    data_dir: Path
    database: Database

    @property
    def folder(self) -> Path:
        """Where they lie unless the store is shared."""
        return self.data_dir / PROFILES_FOLDER

    def read(self) -> Sequence[Profile]:
        """All of them, in the order of their names; raises ProfileError for a wrong one."""
        if self.database.dialect.is_shared:
            return parse_profiles(documents.below(self.database, PROFILES_FOLDER))
        return profiles_of_folder(self.data_dir)

    def names(self) -> set[str]:
        """The names of their files."""
        if self.database.dialect.is_shared:
            return set(documents.below(self.database, PROFILES_FOLDER))
        return {path.name for path in self.folder.glob("*.json")}

    def keep(self, name: str, text: str, *, now: datetime) -> None:
        """Add one, or replace that of the same name. Raises ProfileError for a wrong one and beyond PROFILES_MAX, and
        Conflict where another process replaces it at this moment."""
        if not (name.endswith(".json") and name.isprintable()):
            raise ProfileError(f"{name!r} is no name of a profile: it has to end in .json")
        parse_profiles({name: text})
        if len(self.names() | {name}) > PROFILES_MAX:
            raise ProfileError(f"more than {PROFILES_MAX} profiles")
        if self.database.dialect.is_shared:
            document = f"{PROFILES_FOLDER}/{name}"
            before = documents.find(self.database, document)
            documents.replace(self.database, document, text, before=before, now=now)
        else:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            unfinished = self.folder / f"{name}.part"
            unfinished.write_text(text, "utf-8")
            unfinished.replace(self.folder / name)

    def remove(self, name: str) -> None:
        """Forget the one of this name, which is there."""
        if self.database.dialect.is_shared:
            documents.remove(self.database, f"{PROFILES_FOLDER}/{name}")
        else:
            (self.folder / name).unlink()


def profiles_of_folder(data_dir: Path) -> Sequence[Profile]:
    """Those of a store that one process has open, whoever asks; raises ProfileError for a wrong one."""
    folder = data_dir / PROFILES_FOLDER
    return load_profiles(folder) if folder.is_dir() else ()
