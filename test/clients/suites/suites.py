"""The own tests of SQLAlchemy and Django, on Trellis and on PostgreSQL.

    suites.py FOLDER OURS THEIRS SUITE...

OURS and THEIRS are URLs of servers on which databases may be made; FOLDER keeps what is installed
and what comes out. Of the tests that pass on PostgreSQL it tells how many pass on Trellis, and
writes the others with their reasons to FOLDER/SUITE.txt.
"""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

PACKAGES = ["psycopg2-binary==2.9.10", "psycopg[binary]==3.2.13", "pytest==8.3.4", "tblib==3.0.0"]
SOURCES = {"sqlalchemy": "sqlalchemy==2.0.36", "django": "django==5.1.4"}
# The share of the tests passed on PostgreSQL that must pass here, too.
WANTED = 0.95
HERE = Path(__file__).resolve().parent

# What is run by one process each: a file whose tests leave connections behind stands alone.
ALONE = "test/orm/test_transaction.py"
SQLALCHEMY = {
    "sqlalchemy": [
        ["test/dialect/postgresql", "test/dialect/test_suite.py", "--backend-only"],
        ["test/sql", "test/orm", "test/engine", "test/base", f"--ignore={ALONE}"],
        [ALONE],
    ],
    "sqlalchemy-dialect": [["test/dialect/test_suite.py", "--backend-only"]],
}
# Groups of Django's tests that need other libraries of the system.
DJANGO_WITHOUT = ["gis_tests"]
# So many groups are in one pair of databases: what a test empties are all of their tables.
GROUPS = 13


def run(command, **more):
    subprocess.run(command, check=True, **more)


def install(folder):
    """A virtual environment with the packages and the sources of the suites."""
    python = folder / "venv/bin/python"
    if not python.exists():
        run([sys.executable, "-m", "venv", folder / "venv"])
    run([python, "-m", "pip", "install", "-q", *PACKAGES])
    for name, source in SOURCES.items():
        if list(folder.glob(f"{name}-*/")) or list(folder.glob(f"{name.title()}-*/")):
            continue
        run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
             "-d", folder, source])
        version = source.split("==")[1]
        (archive,) = [path for path in folder.glob("*.tar.gz")
                      if path.name.lower() == f"{name}-{version}.tar.gz"]
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        tree = source_of(folder, name)
        run([python, "-m", "pip", "install", "-q", tree])
    return python


def source_of(folder, name):
    (tree,) = [path for path in folder.iterdir()
               if path.is_dir() and path.name.lower().startswith(f"{name}-")]
    return tree


def psql(url, database, *statements):
    at = urlsplit(url)
    for statement in statements:
        run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h", at.hostname, "-p", str(at.port),
             "-U", at.username, "-d", database, "-c", statement])


def sqlalchemy(folder, python, url, suite, out):
    at = urlsplit(url)
    uri = f"postgresql+psycopg2://{at.username}@{at.hostname}:{at.port}/test"
    environment = dict(os.environ, PYTHONPATH=str(HERE), OUTCOMES=f"{out}.tsv")
    # Under SERIALIZABLE a test with two connections may wait for its own locks.
    psql(url, "postgres", f"ALTER ROLE {at.username} SET lock_timeout = '10s'")
    for tests in SQLALCHEMY[suite]:
        psql(url, "postgres", "DROP DATABASE IF EXISTS test", "CREATE DATABASE test")
        psql(url, "test", "CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2")
        # The plugin on both, so that both run the same tests.
        command = [python, "-m", "pytest", "-p", "no_extensions", *tests, "-q",
                   "-p", "no:warnings", "--maxfail=1000000", "--dburi", uri]
        with open(f"{out}.log", "a") as log:
            subprocess.run(command, cwd=source_of(folder, "sqlalchemy"), env=environment,
                           stdout=log, stderr=subprocess.STDOUT, check=False)


def django_groups(tests):
    """The groups that have tests of databases."""
    for group in sorted(tests.iterdir()):
        if group.name in DJANGO_WITHOUT or not (group / "__init__.py").is_file():
            continue
        texts = [path.read_text(errors="replace") for path in group.rglob("*.py")]
        if any(re.search(r"\b(Transaction)?TestCase\b", text) for text in texts):
            yield group.name


def django(folder, python, url, suite, out):
    tests = source_of(folder, "django") / "tests"
    (tests / "of_trellis.py").write_text((HERE / "of_trellis.py").read_text())
    at = urlsplit(url)
    # As PostgreSQL's default; under SERIALIZABLE tests with threads wait for their own locks.
    level = f"ALTER ROLE {at.username} SET default_transaction_isolation = 'read committed'"
    psql(url, "postgres", level)
    groups = list(django_groups(tests))
    for first in range(0, len(groups), GROUPS):
        environment = dict(os.environ, DB_HOST=at.hostname, DB_PORT=str(at.port),
                           DB_USER=at.username, DB_NAME=f"django_{first}", PYTHONUNBUFFERED="1",
                           OUTCOMES=f"{out}.tsv")
        with open(f"{out}.log", "a") as log:
            subprocess.run([python, "runtests.py", "--settings=of_trellis", "--parallel=1",
                            "--noinput", "--verbosity=2", *groups[first:first + GROUPS]],
                           cwd=tests, env=environment, stdout=log, stderr=subprocess.STDOUT,
                           check=False)


def outcomes(path):
    """For each test of a run that reached a server whether it passed (None: left out), and why
    not."""
    found = {}
    for line in Path(path).read_text(errors="replace").splitlines():
        name, outcome, reason, *used = line.split("\t")
        if used != ["-"] and (name not in found or found[name][0] is not False):
            found[name] = ({"ok": True, "skip": None}.get(outcome, False), reason)
    return found


def main():
    folder, ours, theirs, *suites = sys.argv[1:]
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = install(folder)
    failed = False
    for suite in suites:
        results = []
        for which, url in (("postgres", theirs), ("trellis", ours)):
            out = folder / f"{suite}.{which}"
            print(f"{suite} on {which}: {out}.log", flush=True)
            for kind in ("log", "tsv"):
                Path(f"{out}.{kind}").write_text("")
            run_suite = django if suite == "django" else sqlalchemy
            run_suite(folder, python, url, suite, out)
            results.append(outcomes(f"{out}.tsv"))
        theirs_of, ours_of = results
        passed = [name for name, (is_passed, _) in theirs_of.items() if is_passed]
        missing = {name: ours_of.get(name, (False, "did not run")) for name in passed}
        missing = {name: reason for name, (is_passed, reason) in missing.items() if not is_passed}
        with open(folder / f"{suite}.txt", "w") as file:
            for name, reason in sorted(missing.items()):
                print(f"{name}\t{reason}", file=file)
        share = 1 - len(missing) / max(1, len(passed))
        print(f"{suite}: {len(passed) - len(missing)} of {len(passed)} that pass on PostgreSQL "
              f"({100 * share:.1f} %); the others: {folder / suite}.txt", flush=True)
        failed |= not passed or share < WANTED
    sys.exit(failed)


main()
