"""Settings and runner of Django's own tests on one server: only tests that have a database, each
outcome as a line of the file OUTCOMES as soon as it is known.

What a server does not have is left out, so that other tests run: extensions, and columns of types
that are not there. Tests of these fail.
"""

import os
import re
from unittest import TestSuite, TextTestResult

from django.db.backends.postgresql.features import DatabaseFeatures
from django.test.runner import DiscoverRunner


def database(number):
    return {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres",
            "HOST": os.environ["DB_HOST"], "PORT": os.environ["DB_PORT"],
            "USER": os.environ["DB_USER"], "TEST": {"NAME": f"{os.environ['DB_NAME']}_{number}"}}


DATABASES = {"default": database(1), "other": database(2)}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "of_trellis.Runner"
# Models name a collation that not every server has.
DatabaseFeatures.test_collations = dict.fromkeys(
    ["deterministic", "non_default", "swedish_ci", "virtual"], "C")


class Told(TextTestResult):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.to = os.open(os.environ["OUTCOMES"], flags)
        self.bad = set()

    def tell(self, test, outcome, error=None):
        lines = [] if error is None else self._exc_info_to_string(error, test).splitlines()
        said = [line for line in lines if re.match(r"^[\w.]+: ", line)]
        told = [line for line in said if "Error: " in line] or said or lines or [""]
        line = "\t".join([test.id(), outcome, told[0].replace("\t", " ")[:300]])
        os.write(self.to, line.encode(errors="replace") + b"\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        if test.id() not in self.bad:
            self.tell(test, "ok")

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test, "bad", err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test, "bad", err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, "skip")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.tell(test, "ok")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.tell(test, "bad")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None and test.id() not in self.bad:
            self.bad.add(test.id())
            self.tell(test, "bad", err)

    def stopTest(self, test):
        """A test that ends in a failed block does not take those behind it along."""
        super().stopTest(test)
        from django.db import connections
        from django.test import TestCase, TransactionTestCase
        if isinstance(test, TestCase) or not isinstance(test, TransactionTestCase):
            return
        for connection in connections.all(initialized_only=True):
            if connection.connection is None or not connection.in_atomic_block:
                continue
            connection.in_atomic_block = connection.needs_rollback = False
            connection.savepoint_ids, connection.atomic_blocks = [], []
            connection.run_on_commit = []
            connection.close()
            try:
                test.tearDown()
            except Exception as error:
                print(f"{test.id()} leaves something behind: {error}")


def leaves(suite):
    for test in suite:
        if isinstance(test, TestSuite):
            yield from leaves(test)
        else:
            yield test


class Runner(DiscoverRunner):
    def build_suite(self, *args, **more):
        from django.test import TransactionTestCase
        suite = super().build_suite(*args, **more)
        suite._tests[:] = [test for test in leaves(suite)
                           if isinstance(test, TransactionTestCase)
                           or type(test).__name__ == "_FailedTest"]
        return suite

    def get_resultclass(self):
        return Told


def leave_out_what_is_absent():
    from django.contrib.postgres.operations import CreateExtension
    from django.db import NotSupportedError, ProgrammingError, transaction
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor

    forwards, column_sql = CreateExtension.database_forwards, BaseDatabaseSchemaEditor.column_sql
    is_known = {"serial": True, "bigserial": True, "smallserial": True}

    def extension(self, app, editor, *more):
        try:
            with transaction.atomic(using=editor.connection.alias):
                forwards(self, app, editor, *more)
        except NotSupportedError:
            pass

    def column(self, model, field, *args, **more):
        kind = re.split(r"[(\[]", field.db_type(self.connection) or "")[0].strip()
        if kind and kind not in is_known:
            try:
                with transaction.atomic(using=self.connection.alias):
                    with self.connection.cursor() as cursor:
                        cursor.execute(f"SELECT CAST(NULL AS {kind})")
                is_known[kind] = True
            except (NotSupportedError, ProgrammingError):
                is_known[kind] = False
        if kind and not is_known[kind]:
            return None, None
        return column_sql(self, model, field, *args, **more)

    CreateExtension.database_forwards = extension
    BaseDatabaseSchemaEditor.column_sql = column


leave_out_what_is_absent()
