-- psycopg 3: connect, statements, TypeInfo/RangeInfo/EnumInfo/CompositeInfo.fetch, transactions, COPY, executemany.
BEGIN;

-- $1 = '1'
select id, email from customer where id = $1;

SAVEPOINT "_pg3_1";

-- $1 = 'int4'
SELECT
    typname AS name, oid, typarray AS array_oid,
    oid::regtype::text AS regtype, typdelim AS delimiter
FROM pg_type t
WHERE t.oid = to_regtype($1)
ORDER BY t.oid;

RELEASE "_pg3_1";

-- $1 = 'int4range'
SELECT t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
    t.oid::regtype::text AS regtype,
    r.rngsubtype AS subtype_oid
FROM pg_type t
JOIN pg_range r ON t.oid = r.rngtypid
WHERE t.oid = to_regtype($1);

-- $1 = 'nope'
SELECT name, oid, array_oid, regtype, array_agg(label) AS labels
FROM (
    SELECT
        t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
        t.oid::regtype::text AS regtype, e.enumlabel AS label
    FROM pg_type t
    LEFT JOIN  pg_enum e
    ON e.enumtypid = t.oid
    WHERE t.oid = to_regtype($1)
    ORDER BY e.enumsortorder
) x
GROUP BY name, oid, array_oid, regtype;

-- $1 = 'customer'
SELECT
    t.typname AS name, t.oid AS oid, t.typarray AS array_oid,
    t.oid::regtype::text AS regtype,
    coalesce(a.fnames, '{}') AS field_names,
    coalesce(a.ftypes, '{}') AS field_types
FROM pg_type t
LEFT JOIN (
    SELECT
        attrelid,
        array_agg(attname) AS fnames,
        array_agg(atttypid) AS ftypes
    FROM (
        SELECT a.attrelid, a.attname, a.atttypid
        FROM pg_attribute a
        JOIN pg_type t ON t.typrelid = a.attrelid
        WHERE t.oid = to_regtype($1)
        AND a.attnum > 0
        AND NOT a.attisdropped
        ORDER BY a.attnum
    ) x
    GROUP BY attrelid
) a ON a.attrelid = t.typrelid
WHERE t.oid = to_regtype($1);

select * from orders;

COMMIT;

BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;

select 1;

BEGIN ISOLATION LEVEL SERIALIZABLE;

copy customer(id,email) from stdin;

copy customer(id,email) to stdout;

copy customer(id,email) to stdout (format binary);

-- $1 = '600'
insert into customer(id) values ($1);

select 2;

ROLLBACK;

DEALLOCATE ALL;

select 3;
