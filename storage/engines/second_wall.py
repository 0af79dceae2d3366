"""A second wall between users: on PostgreSQL, the database itself shows a request only the rows of the user whose token
it carries, even if a statement lacks the condition (row-level security).

The policies bind every role but the owner of the tables, which the worker, commands and signing in use.
"""

from storage.database import NOBODY, Session, Store, StoreError
from storage.documents import SEALED
from storage.engines import distribution
from storage.row_owners import OF_USERS

READ_BY_ALL = {"documents": f"name NOT LIKE '%{SEALED}'"}  # rates and CSV profiles; a request needs no other document
SHOWN = {
    **{
        table: ("SELECT, INSERT, UPDATE, DELETE", f"{owner} = current_setting('app.user_id', true)")
        for table, owner in OF_USERS.items()
    },
    **{table: ("SELECT", rows) for table, rows in READ_BY_ALL.items()},
}
"""For each table, the rights of a request and the condition on the rows that it may use."""
THERE = "SELECT name FROM unnest($1::TEXT[]) AS named(name) WHERE to_regclass(name) IS NOT NULL"
LACKING = (
    "SELECT name FROM unnest($1::TEXT[]) AS named(name)"
    " WHERE NOT has_table_privilege($2::NAME, name, 'SELECT') OR NOT EXISTS"
    " (SELECT polname FROM pg_policy WHERE polrelid = name::REGCLASS AND polname = 'own_rows')"
)
BOUND = (
    "SELECT count(*) AS bound FROM unnest($1::TEXT[]) AS named(name) JOIN pg_class AS c ON c.oid = to_regclass(name)"
    " WHERE row_security_active(c.oid) AND NOT pg_has_role(c.relowner, 'MEMBER')"
)


def build(store: Store) -> None:
    """Make the role as which the store connects for single users (`app_url`) see only the rows of one user, in every
    table of users; existing policies stay. Raises StoreError for a role that would see all rows nevertheless."""
    everybody, nobody = store.for_everybody(), store.of(NOBODY)
    tables = [row["name"] for row in everybody.rows(THERE, list(SHOWN))]  # `bankdata check` names what is gone
    role = str(nobody.rows("SELECT current_user AS role")[0]["role"])
    if not everybody.rows("SELECT rolname FROM pg_roles WHERE rolname = $1", role):
        raise StoreError(_describe_unfit_role(role))
    if everybody.rows(LACKING, tables, role):
        with store.migrating() as session, distribution.keep_distributed(session):
            _close(session, [row["name"] for row in session.rows(LACKING, tables, role)], role)
    bound = int(nobody.rows(BOUND, tables)[0]["bound"])
    if bound < len(tables):
        raise StoreError(_describe_unfit_role(role))


def _close(session: Session, tables: list[str], role: str) -> None:
    [names] = session.rows("SELECT quote_ident($1) AS role, quote_ident(current_schema()) AS place", role)
    session.execute(f"GRANT USAGE ON SCHEMA {names['place']} TO {names['role']}")
    for table in tables:
        rights, rows = SHOWN[table]
        session.execute(f"GRANT {rights} ON {table} TO {names['role']}")
        session.execute(f"DROP POLICY IF EXISTS own_rows ON {table}")  # made for another role
        session.execute(f"CREATE POLICY own_rows ON {table} USING ({rows})")
        session.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def _describe_unfit_role(role: str) -> str:
    return (
        f"BANKDATA_DATABASE_APP_URL must name the same database and a role that sees no rows by itself, and {role} is"
        " none: make one that owns no table, is no superuser and has no BYPASSRLS (docs/company.md)."
    )
