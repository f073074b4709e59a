create role dumped_team nologin noinherit;
create role dumped_boss createrole createdb;
create role dumped_ann login password 'secret' valid until '2030-01-02 03:04:05+00' in role dumped_team;
grant dumped_boss to dumped_ann with admin option;
alter role dumped_ann set lock_timeout = '1s';
alter role dumped_ann set search_path = public;
alter role dumped_team set statement_timeout = '5s';
