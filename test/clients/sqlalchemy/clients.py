"""SQLAlchemy 2 as applications use it: `clients.py URL`. Prints `passed: N`."""

import sys
import threading
import time
from datetime import datetime, timezone
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

PASSED = 0


def check(found, expected):
    global PASSED
    assert found == expected, f"expected {expected!r}, found {found!r}"
    PASSED += 1


class Base(orm.DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id: orm.Mapped[int] = orm.mapped_column(sa.Identity(), primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(40), unique=True)
    notes: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    made: orm.Mapped[datetime] = orm.mapped_column(
        sa.DateTime(timezone=True), server_default=sa.func.now()
    )
    version: orm.Mapped[int] = orm.mapped_column(server_default='1')
    doc = orm.mapped_column(pg.JSONB)
    tags = orm.mapped_column(pg.ARRAY(sa.Text))
    orders: orm.Mapped[list["Order"]] = orm.relationship(
        back_populates="customer", cascade="all, delete-orphan"
    )
    __mapper_args__ = {"version_id_col": version}


class Order(Base):
    __tablename__ = "orders"
    __table_args__ = (
        sa.Index("orders_by_customer", "customer_id", sa.text("amount DESC")),
        sa.CheckConstraint("amount >= 0", name="orders_amount"),
        {"comment": "what was ordered"},
    )
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    customer_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("customer.id", ondelete="CASCADE")
    )
    amount: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(12, 2))
    customer: orm.Mapped[Customer] = orm.relationship(back_populates="orders")


def reflection(engine):
    meta = sa.MetaData()
    meta.reflect(engine)
    check(sorted(meta.tables), ["customer", "orders"])
    orders = meta.tables["orders"]
    check(orders.comment, "what was ordered")
    check([c.name for c in orders.primary_key], ["id"])
    (key,) = orders.foreign_keys
    check((key.column.table.name, key.ondelete), ("customer", "CASCADE"))
    inspector = sa.inspect(engine)
    indexes = inspector.get_indexes("orders")
    check([(i["name"], i["column_names"]) for i in indexes],
          [("orders_by_customer", ["customer_id", "amount"])])
    check([c["name"] for c in inspector.get_check_constraints("orders")], ["orders_amount"])
    check([u["column_names"] for u in inspector.get_unique_constraints("customer")], [["name"]])
    columns = {c["name"]: c for c in inspector.get_columns("customer")}
    check(str(columns["name"]["type"]), "VARCHAR(40)")
    check(columns["id"]["identity"]["start"], 1)
    check(isinstance(columns["doc"]["type"], pg.JSONB), True)
    check(inspector.has_table("customer") and not inspector.has_table("nothing"), True)


def objects(engine):
    with orm.Session(engine) as session:
        first = Customer(name="a", notes="long " * 5000, doc={"a": [1, None]}, tags=["x", "y z"])
        first.orders = [Order(amount=Decimal(n)) for n in (1, 2, 3)]
        session.add(first)
        session.commit()
        found = session.scalars(
            sa.select(Customer).options(orm.selectinload(Customer.orders)).filter_by(name="a")
        ).one()
        check(sorted(o.amount for o in found.orders), [1, 2, 3])
        check((found.doc, found.tags, len(found.notes)), ({"a": [1, None]}, ["x", "y z"], 25000))
        check(found.made <= datetime.now(timezone.utc), True)
        total = sa.select(Customer.name, sa.func.sum(Order.amount)).join(Order)
        check(session.execute(total.group_by(Customer.name)).all(), [("a", Decimal("6.00"))])
        found.orders.pop()
        session.commit()
        check(session.scalar(sa.select(sa.func.count()).select_from(Order)), 2)


def savepoints(engine):
    with orm.Session(engine) as session:
        session.add(Customer(name="kept"))
        session.flush()
        try:
            with session.begin_nested():
                session.add(Customer(name="a"))
                session.flush()
        except sa.exc.IntegrityError as error:
            check(error.orig.sqlstate, "23505")
        session.commit()
        check(session.scalars(sa.select(Customer.name).order_by("name")).all(), ["a", "kept"])


def stale(engine):
    with orm.Session(engine) as one, orm.Session(engine) as two:
        left = one.scalars(sa.select(Customer).filter_by(name="kept")).one()
        one.commit()
        right = two.scalars(sa.select(Customer).filter_by(name="kept")).one()
        right.notes = "two"
        two.commit()
        one.execute(sa.text("SELECT 1"))
        left_version = left.version
        check(left_version, 2)
        left.notes = "one"
        two.execute(sa.update(Customer).where(Customer.name == "kept").values(version=9))
        two.commit()
        try:
            one.commit()
            check("a commit", "a stale object")
        except (orm.exc.StaleDataError, sa.exc.OperationalError):
            one.rollback()
            check(True, True)


def bulk(engine):
    with orm.Session(engine) as session:
        rows = [{"name": f"n{i}", "tags": []} for i in range(1000)]
        ids = session.scalars(sa.insert(Customer).returning(Customer.id), rows).all()
        check(len(set(ids)), 1000)
        put = pg.insert(Customer).values(name="n1", notes="put", version=1)
        session.execute(
            put.on_conflict_do_update(index_elements=["name"], set_={"notes": put.excluded.notes})
        )
        check(session.scalar(sa.select(Customer.notes).filter_by(name="n1")), "put")
        session.commit()
    with engine.connect().execution_options(stream_results=True, max_row_buffer=100) as stream:
        check(sum(1 for _ in stream.execute(sa.select(Customer.id))), 1002)


def cancel(engine):
    with engine.connect() as connection:
        raw = connection.connection.driver_connection
        threading.Timer(0.3, raw.cancel).start()
        begin = time.monotonic()
        try:
            connection.execute(sa.text("SELECT pg_sleep(30)"))
            check("a result", "an error")
        except sa.exc.OperationalError as error:
            check((error.orig.sqlstate, time.monotonic() - begin < 10), ("57014", True))


def migrations(engine):
    with engine.begin() as connection:
        add = "ALTER TABLE orders ADD COLUMN state varchar(10) DEFAULT 'new' NOT NULL"
        connection.execute(sa.text(add))
    check("state" in {c["name"] for c in sa.inspect(engine).get_columns("orders")}, True)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE orders DROP COLUMN state"))
    check("state" in {c["name"] for c in sa.inspect(engine).get_columns("orders")}, False)


def main(url):
    engine = sa.create_engine(url.replace("postgres://", "postgresql+psycopg://"))
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    for part in (reflection, objects, savepoints, stale, bulk, cancel, migrations):
        part(engine)
    Base.metadata.drop_all(engine)
    check(sa.inspect(engine).get_table_names(), [])
    engine.dispose()
    print(f"passed: {PASSED}")


main(sys.argv[1])
