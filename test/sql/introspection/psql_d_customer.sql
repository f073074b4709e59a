-- psql 15, `\d customer`. Object numbers are written :name where psql had put the oid.
SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true)
FROM pg_catalog.pg_constraint r
WHERE r.conrelid = ':customer' AND r.contype = 'c'
ORDER BY 1;
