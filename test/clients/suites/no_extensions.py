"""A plugin for SQLAlchemy's own tests: makes no extensions before the first one, and tells each
test as a line of the file OUTCOMES, with whether it reached the server."""

import os
import re

import pytest

reached = [0]
told = os.open(os.environ.get("OUTCOMES", os.devnull),
               os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def counted(of, name):
    inner = getattr(of, name)

    def outer(self, *args, **more):
        reached[0] += self.name == "postgresql"
        return inner(self, *args, **more)
    setattr(of, name, outer)


def pytest_configure(config):
    from sqlalchemy.dialects.postgresql import provision as _
    from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
    from sqlalchemy.engine.default import DefaultDialect
    from sqlalchemy.testing import provision
    provision.post_configure_engine.fns.pop("postgresql", None)
    for name in ("do_execute", "do_executemany", "do_execute_no_params"):
        counted(DefaultDialect, name)
        if name in vars(PGDialect_psycopg2):
            counted(PGDialect_psycopg2, name)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.before, item.used, item.outcome = reached[0], "-", ("ok", "")
    yield
    outcome, reason = item.outcome
    # The names of classes hold the release of the server.
    name = re.sub(r"_postgresql\+psycopg2_\d+_\d+", "", item.nodeid).replace("\t", " ")
    line = "\t".join([name, outcome, reason, item.used])
    os.write(told, line.encode(errors="replace") + b"\n")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    # Behind each test the suite asks the server for transactions that are left open.
    if call.when != "teardown" and reached[0] > item.before:
        item.used = "server"
    if report.skipped and not hasattr(report, "wasxfail"):
        item.outcome = ("skip", "")
    elif report.failed and item.outcome[0] == "ok":
        lines = str(report.longrepr).splitlines()
        said = [line for line in lines if re.search(r"(Error|errors)\b.*: ", line)]
        item.outcome = ("bad", (said or lines or [""])[-1].replace("\t", " ")[:300])
