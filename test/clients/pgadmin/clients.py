"""What pgAdmin asks: its own templates of SQL, filled in for the objects of a small database.

    clients.py URL TEMPLATES SERVER

The queries are those that PostgreSQL 15 is asked. `asked.txt` lists those that PostgreSQL answers as they are filled
in here; UPDATE=1 writes it again. Trellis must answer all of them, but for those of `refused.txt`, which it must
refuse.
"""

import os
import pathlib
import re
import sys

import jinja2
import psycopg

VERSION = 15
SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE customer (id serial PRIMARY KEY, name varchar(50) NOT NULL UNIQUE, feels mood DEFAULT 'happy');
CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customer ON DELETE CASCADE,
    total numeric(12,2) CHECK (total >= 0), placed timestamptz DEFAULT now());
CREATE INDEX orders_placed ON orders (placed DESC);
CREATE VIEW rich AS SELECT id, name FROM customer WHERE name <> '';
CREATE SEQUENCE numbers;
COMMENT ON TABLE customer IS 'who buys';
INSERT INTO customer (name) VALUES ('Ann'), ('Bob');
"""


class Lenient(jinja2.ChainableUndefined):
    """What the templates ask for and nobody gives is nothing."""


def literal(value, *_rest, **_more):
    if isinstance(value, jinja2.Undefined) or value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def identifier(*parts, **_more):
    names = [part for part in parts if isinstance(part, str)]
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def versioned(folder):
    """The templates for this version: name without the version, and the file."""
    found = {}
    for path in sorted(folder.rglob("*.sql")):
        text = path.relative_to(folder).as_posix()
        if "/tests/" in text or "/ppas/" in text or "/templates/" not in text:
            continue
        match = re.search(r"/(default|(?:9\.\d|\d+)_plus)/", text)
        number = 0.0
        if match and match[1] != "default":
            number = float(match[1].split("_")[0])
        if number > VERSION:
            continue
        name = re.sub(r"/(default|(?:9\.\d|\d+)_plus)/", "/", text).removeprefix("pgadmin4/pgadmin/")
        if name not in found or found[name][0] < number:
            found[name] = (number, path)
    return {name: path for name, (_, path) in found.items()}


def objects(connection):
    """The numbers of the objects that the templates are filled in with."""

    def one(text):
        return connection.execute(text).fetchone()[0]

    def relation(name):
        return one(f"SELECT '{name}'::regclass::oid")

    table = relation("customer")
    constraint = "SELECT oid FROM pg_constraint WHERE conname = '{}'"
    return {
        "did": one("SELECT oid FROM pg_database WHERE datname = current_database()"),
        "scid": 2200, "schema_oid": 2200, "nspid": 2200, "parent_id": 2200,
        "tid": table, "table_id": table, "foid": table, "vid": relation("rich"), "seid": relation("numbers"),
        "object_id": table, "oid": table, "clid": 1, "idx": relation("orders_placed"),
        "cid": one(constraint.format("customer_pkey")), "fkid": one(constraint.format("orders_customer_fkey")),
        "typeid": one("SELECT 'mood'::regtype::oid"), "rid": 10, "role_id": 10, "user_id": 10, "tsid": 1663,
        "datlastsysoid": 16383, "datlastsysoid_": 16383, "show_sysobj": False, "show_system_objects": False,
        "show_object_list": True, "schema": "public", "nspname": "public", "schema_name": "public",
        "table": "customer", "name": "customer", "tname": "customer", "table_name": "customer", "relname": "customer",
        "object_name": "customer", "database": one("SELECT current_database()"), "object_type": "r",
        "where_clause": f"WHERE objid = {table}::oid", "search_text": "cust", "obj_type": "all", "limit": 10,
        "add_replication_clause": False, "is_catalog": False, "type": "table", "username": "postgres",
        "schema_names": ["public"], "schemas": "'public'", "constraint_type": "p", "primary_keys": {"id": "int4"},
    }


def queries(folder, context):
    """Name and text of each template that is a query."""
    roots = [path for path in folder.rglob("templates") if path.is_dir()]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([str(root) for root in sorted(roots)]),
        undefined=Lenient,
        extensions=["jinja2.ext.do", "jinja2.ext.i18n"],
    )
    environment.install_null_translations()
    environment.filters.update(qtLiteral=literal, qtIdent=identifier, qtTypeIdent=identifier, hasAny=lambda *_: False)
    for name, path in sorted(versioned(folder).items()):
        try:
            text = environment.from_string(path.read_text()).render(context)
        except Exception:  # it needs what only pgAdmin has
            continue
        text = re.sub(r"^\s*(--[^\n]*\n|/\*.*?\*/)*\s*", "", text, flags=re.S).strip().rstrip(";")
        if re.match(r"(?i)(select|with|show)\b", text):
            yield name, text


def listed(name):
    lines = (pathlib.Path(__file__).parent / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main():
    url, folder, server = sys.argv[1:]
    answered, failed = [], {}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute("SET statement_timeout = '20s'")
        for name, text in queries(pathlib.Path(folder), objects(connection)):
            try:
                connection.execute(text)
                answered.append(name)
            except psycopg.Error as error:
                failed[name] = f"{error.sqlstate} {error}".splitlines()[0]
    if server == "postgres" and "UPDATE" in os.environ:
        lines = "".join(f"{name}\n" for name in answered)
        (pathlib.Path(__file__).parent / "asked.txt").write_text(lines)
    asked = listed("asked.txt")
    refused = [] if server == "postgres" else listed("refused.txt")
    for name in refused:
        if name not in asked:
            failed[name] = "it is not asked"
    wrong = [name for name in asked if (name in answered) == (name in refused)]
    for name in wrong:
        print(f"FAILED {name}: {failed.get(name, 'it is not refused any more')}")
    if wrong:
        sys.exit(1)
    print(f"{len(asked)} queries, of which {len(refused)} are refused")
    print(f"passed: {len(asked) - len(refused)}")


main()
