"""Django as applications use it: `clients.py URL`. Prints `passed: N`."""

import io
import json
import sys
import tempfile
from urllib.parse import urlparse

import django
from django.conf import settings

PASSED = 0


def check(found, expected):
    global PASSED
    assert found == expected, f"expected {expected!r}, found {found!r}"
    PASSED += 1


def configure(url):
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": url.path.lstrip("/"),
                "USER": url.username,
                "HOST": url.hostname,
                "PORT": url.port,
            }
        },
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django.contrib.sessions",
            "django.contrib.sites",
        ],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        USE_TZ=True,
        SECRET_KEY="test",
    )
    django.setup()


def command(*args, **options):
    from django.core.management import call_command

    out = io.StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def migrations():
    from django.db import connection

    command("migrate", verbosity=0)
    tables = connection.introspection.table_names()
    check("auth_user" in tables and "auth_user_groups" in tables, True)
    for app in ("sessions", "sites"):
        command("migrate", app, "zero", verbosity=0)
        check(f"django_{app.rstrip('s')}" in connection.introspection.table_names(), False)
        command("migrate", app, verbosity=0)
    check("[ ]" in command("showmigrations"), False)
    models = command("inspectdb")
    check("Unable to inspect" in models, False)
    check("models.ForeignKey(AuthUser, models.DO_NOTHING)" in models, True)


def objects():
    from django.contrib.auth.models import Group, User
    from django.db import IntegrityError, transaction
    from django.db.models import Count, F

    first = User.objects.create_user("a", "a@x", "secret")
    first.groups.add(Group.objects.create(name="g"))
    User.objects.bulk_create([User(username=f"u{i}") for i in range(500)])
    check(User.objects.filter(groups__name="g").count(), 1)
    # Outside of a transaction it asks for a cursor WITH HOLD.
    check(sum(1 for _ in User.objects.iterator(chunk_size=100)), 501)
    with transaction.atomic():
        check(sum(1 for _ in User.objects.iterator(chunk_size=100)), 501)
    User.objects.bulk_create(
        [User(username="u1", email="z")],
        update_conflicts=True,
        update_fields=["email"],
        unique_fields=["username"],
    )
    check(User.objects.get(username="u1").email, "z")
    with transaction.atomic():
        User.objects.create(username="s")
        try:
            with transaction.atomic():
                User.objects.create(username="s")
        except IntegrityError:
            check(True, True)
        locked = User.objects.select_for_update().filter(username="s")
        check(list(locked.values_list("username", flat=True)), ["s"])
    some = list(User.objects.order_by("id")[:50])
    for user in some:
        user.first_name = "F"
    User.objects.bulk_update(some, ["first_name"])
    check(User.objects.filter(first_name="F").count(), 50)
    check(User.objects.filter(id__lt=F("id") + 1, username__icontains="U49").count(), 11)
    check(Group.objects.annotate(n=Count("user")).values_list("n", flat=True)[0], 1)
    check(User.objects.update_or_create(username="s", defaults={"email": "e"})[1], False)
    check(first.check_password("secret"), True)


def deferred():
    from django.contrib.auth.models import Permission, User
    from django.db import IntegrityError, connection, transaction

    link = User.user_permissions.through
    user = User.objects.get(username="a")
    with transaction.atomic():
        link.objects.create(user=user, permission_id=9_999)
        permission = Permission.objects.first()
        Permission.objects.create(
            id=9_999, name="late", codename="late", content_type=permission.content_type
        )
    check(user.user_permissions.count(), 1)
    try:
        with transaction.atomic():
            link.objects.create(user=user, permission_id=10_000)
            check(link.objects.filter(permission_id=10_000).count(), 1)
    except IntegrityError:
        check(link.objects.filter(permission_id=10_000).count(), 0)
    try:
        with transaction.atomic():
            link.objects.create(user=user, permission_id=10_000)
            connection.check_constraints()
    except IntegrityError:
        check(True, True)


def fixtures():
    from django.contrib.auth.models import Group

    groups = [{"model": "auth.group", "pk": n, "fields": {"name": f"f{n}"}} for n in (40, 50)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(groups, file)
        file.flush()
        command("loaddata", file.name, verbosity=0)
    check(Group.objects.create(name="next").id, 51)
    check("f50" in command("dumpdata", "auth.group"), True)
    command("flush", interactive=False, verbosity=0)
    check(Group.objects.count(), 0)


def main(url):
    configure(urlparse(url))
    for part in (migrations, objects, deferred, fixtures):
        part()
    print(f"passed: {PASSED}")


main(sys.argv[1])
