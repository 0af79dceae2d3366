"""Documents that all processes of a store have to read alike, kept in the store instead of in a folder."""

from datetime import datetime

from storage.database import Conflict, Session, add_row_unless_there, set_values

SEALED = ", sealed"  # ends the names of documents with keys, which no request sees (storage.engines.second_wall)


def find(session: Session, name: str) -> str | None:
    """The content of the document with this name; None where there is none."""
    rows = session.rows("SELECT content FROM documents WHERE name = $1", name)
    return str(rows[0]["content"]) if rows else None


def below(session: Session, folder: str) -> dict[str, str]:
    """The contents of the documents whose names begin with `folder/`, by the rest of their names, sorted."""
    rows = session.rows("SELECT name, content FROM documents WHERE starts_with(name, $1) ORDER BY name", f"{folder}/")
    return {row["name"].removeprefix(f"{folder}/"): row["content"] for row in rows}


def add(session: Session, name: str, content: str, *, now: datetime) -> None:
    """Store a document unless there is one of this name; of several at once, the first one wins."""
    add_row_unless_there(session, "documents", name=name, content=content, changed_at=now)


def replace(session: Session, name: str, content: str, *, before: str | None, now: datetime) -> None:
    """Replace a document whose present content is `before` (None: no document). Raises Conflict where it has
    changed."""
    if before is None:
        add(session, name, content, now=now)
        is_ours = find(session, name) == content
    else:
        is_ours = set_values(session, "documents", {"name": name, "content": before}, content=content, changed_at=now)
    if not is_ours:
        raise Conflict("another process replaced the document first")


def remove(session: Session, name: str) -> None:
    """Delete the document of this name, if there is one."""
    session.execute("DELETE FROM documents WHERE name = $1", name)
