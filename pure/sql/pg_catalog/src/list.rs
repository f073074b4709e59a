//! Names, numbers and columns of the virtual tables: the interface that clients compiled against.
//!
//! One entry per table: name, oid, kind (`r` table, `v` view), the function that makes its rows
//! (`none`: always empty), columns.

use super::{CatalogCx, VirtualColumn, VirtualTable};
use super::{
    columns, comments, constraints, domains, enums, fixed, grants, keywords, own, policies, procs,
    relations, routines, schema, statements, statistics, types, user_views, views,
};
use base::RowBatch;

/// Short names of the types, for the table below.
pub(super) mod kinds {
    use base::Type;
    use base::types::{ArrayKind, Reg};

    pub(in super::super) const OID: Type = Type::Oid;
    pub(in super::super) const REGPROC: Type = Type::Reg(Reg::Proc);
    pub(in super::super) const NAME: Type = Type::Name;
    pub(in super::super) const TEXT: Type = Type::Text;
    pub(in super::super) const BOOL: Type = Type::Bool;
    pub(in super::super) const INT2: Type = Type::Int2;
    pub(in super::super) const INT4: Type = Type::Int4;
    pub(in super::super) const INT8: Type = Type::Int8;
    pub(in super::super) const NUMERIC: Type = Type::Numeric(None);
    pub(in super::super) const FLOAT4: Type = Type::Float4;
    pub(in super::super) const FLOAT8: Type = Type::Float8;
    pub(in super::super) const CHAR: Type = Type::InternalChar;
    pub(in super::super) const TIMESTAMPTZ: Type = Type::Timestamptz(None);
    pub(in super::super) const INTERVAL: Type = Type::Interval(None);
    pub(in super::super) const INET: Type = Type::Inet;
    pub(in super::super) const BYTEA: Type = Type::Bytea;
    pub(in super::super) const REGTYPE: Type = Type::Reg(Reg::Type);
    pub(in super::super) const REGTYPES: Type = Type::Array(ArrayKind::Reg(Reg::Type));
    pub(in super::super) const OIDS: Type = Type::Array(ArrayKind::Oid);
    pub(in super::super) const INT2S: Type = Type::Array(ArrayKind::Int2);
    pub(in super::super) const INT2VECTOR: Type = Type::Array(ArrayKind::Int2Vector);
    pub(in super::super) const OIDVECTOR: Type = Type::Array(ArrayKind::OidVector);
    pub(in super::super) const TEXTS: Type = Type::Array(ArrayKind::Text);
    pub(in super::super) const CHARS: Type = Type::Array(ArrayKind::InternalChar);
    pub(in super::super) const NAMES: Type = Type::Array(ArrayKind::Name);
    pub(in super::super) const FLOAT8S: Type = Type::Array(ArrayKind::Float8);
}

macro_rules! tables {
    ($schema:literal: $(
        $name:ident $oid:literal $kind:literal $rows:path [$($column:ident $ty:ident,)*]
    )*) => {
        &[$(VirtualTable {
            oid: $oid,
            name: stringify!($name),
            schema: $schema,
            kind: $kind,
            columns: &[$(VirtualColumn { name: stringify!($column), ty: kinds::$ty }),*],
            rows: $rows,
        }),*]
    };
}

pub(super) use tables;

/// Rows of a table that describes things which do not exist here.
pub(super) fn none(_: &CatalogCx<'_>, _: &mut RowBatch) {}

/// Tables and views of schema `pg_catalog`, in order of name.
pub(super) static SYSTEM: &[VirtualTable] = tables! { "pg_catalog":
    pg_aggregate 2600 'r' none [
        aggfnoid REGPROC, aggkind CHAR, aggnumdirectargs INT2, aggtransfn REGPROC,
        aggfinalfn REGPROC,
        aggcombinefn REGPROC, aggserialfn REGPROC, aggdeserialfn REGPROC, aggmtransfn REGPROC,
        aggminvtransfn REGPROC, aggmfinalfn REGPROC, aggfinalextra BOOL, aggmfinalextra BOOL,
        aggfinalmodify CHAR, aggmfinalmodify CHAR, aggsortop OID, aggtranstype OID,
        aggtransspace INT4, aggmtranstype OID, aggmtransspace INT4, agginitval TEXT,
        aggminitval TEXT,
    ]
    pg_am 2601 'r' fixed::am [
        oid OID, amname NAME, amhandler REGPROC, amtype CHAR,
    ]
    pg_amop 2602 'r' none [
        oid OID, amopfamily OID, amoplefttype OID, amoprighttype OID, amopstrategy INT2,
        amoppurpose CHAR, amopopr OID, amopmethod OID, amopsortfamily OID,
    ]
    pg_amproc 2603 'r' none [
        oid OID, amprocfamily OID, amproclefttype OID, amprocrighttype OID, amprocnum
        INT2, amproc REGPROC,
    ]
    pg_attrdef 2604 'r' columns::attrdef [
        oid OID, adrelid OID, adnum INT2, adbin TEXT,
    ]
    pg_attribute 1249 'r' columns::attribute [
        attrelid OID, attname NAME, atttypid OID, attstattarget INT4, attlen INT2, attnum
        INT2, attndims INT4, attcacheoff INT4, atttypmod INT4, attbyval BOOL, attalign
        CHAR, attstorage CHAR, attcompression CHAR, attnotnull BOOL, atthasdef BOOL,
        atthasmissing BOOL, attidentity CHAR, attgenerated CHAR, attisdropped BOOL,
        attislocal BOOL, attinhcount INT4, attcollation OID, attacl TEXTS, attoptions
        TEXTS, attfdwoptions TEXTS, attmissingval TEXT,
    ]
    pg_auth_members 1261 'r' grants::members [
        roleid OID, member OID, grantor OID, admin_option BOOL,
    ]
    pg_authid 1260 'r' grants::authid [
        oid OID, rolname NAME, rolsuper BOOL, rolinherit BOOL, rolcreaterole BOOL,
        rolcreatedb BOOL, rolcanlogin BOOL, rolreplication BOOL, rolbypassrls BOOL,
        rolconnlimit INT4, rolpassword TEXT, rolvaliduntil TIMESTAMPTZ,
    ]
    pg_available_extensions 12081 'v' statements::available [
        name NAME, default_version TEXT, installed_version TEXT, comment TEXT,
    ]
    pg_cast 2605 'r' none [
        oid OID, castsource OID, casttarget OID, castfunc OID, castcontext CHAR,
        castmethod CHAR,
    ]
    pg_class 1259 'r' relations::class [
        oid OID, relname NAME, relnamespace OID, reltype OID, reloftype OID, relowner OID,
        relam OID, relfilenode OID, reltablespace OID, relpages INT4, reltuples FLOAT4,
        relallvisible INT4, reltoastrelid OID, relhasindex BOOL, relisshared BOOL,
        relpersistence CHAR, relkind CHAR, relnatts INT2, relchecks INT2, relhasrules
        BOOL, relhastriggers BOOL, relhassubclass BOOL, relrowsecurity BOOL,
        relforcerowsecurity BOOL, relispopulated BOOL, relreplident CHAR, relispartition
        BOOL, relrewrite OID, relfrozenxid OID, relminmxid OID, relacl TEXTS, reloptions
        TEXTS, relpartbound TEXT,
    ]
    pg_collation 3456 'r' fixed::collation [
        oid OID, collname NAME, collnamespace OID, collowner OID, collprovider CHAR,
        collisdeterministic BOOL, collencoding INT4, collcollate TEXT, collctype TEXT,
        colliculocale TEXT, collversion TEXT,
    ]
    pg_constraint 2606 'r' constraints::rows [
        oid OID, conname NAME, connamespace OID, contype CHAR, condeferrable BOOL,
        condeferred BOOL, convalidated BOOL, conrelid OID, contypid OID, conindid OID,
        conparentid OID, confrelid OID, confupdtype CHAR, confdeltype CHAR, confmatchtype
        CHAR, conislocal BOOL, coninhcount INT4, connoinherit BOOL, conkey INT2S, confkey
        INT2S, conpfeqop OIDS, conppeqop OIDS, conffeqop OIDS, confdelsetcols INT2S,
        conexclop OIDS, conbin TEXT,
    ]
    pg_conversion 2607 'r' none [
        oid OID, conname NAME, connamespace OID, conowner OID, conforencoding INT4,
        contoencoding INT4, conproc REGPROC, condefault BOOL,
    ]
    pg_cursors 12077 'v' own::cursors [
        name TEXT, statement TEXT, is_holdable BOOL, is_binary BOOL, is_scrollable BOOL,
        creation_time TIMESTAMPTZ,
    ]
    pg_database 1262 'r' fixed::database [
        oid OID, datname NAME, datdba OID, encoding INT4, datlocprovider CHAR,
        datistemplate BOOL, datallowconn BOOL, datconnlimit INT4, datfrozenxid OID,
        datminmxid OID, dattablespace OID, datcollate TEXT, datctype TEXT, daticulocale
        TEXT, datcollversion TEXT, datacl TEXTS, datprotocol TEXT,
    ]
    pg_db_role_setting 2964 'r' grants::settings [
        setdatabase OID, setrole OID, setconfig TEXTS,
    ]
    pg_default_acl 826 'r' grants::defaults [
        oid OID, defaclrole OID, defaclnamespace OID, defaclobjtype CHAR, defaclacl TEXTS,
    ]
    pg_depend 2608 'r' relations::depend [
        classid OID, objid OID, objsubid INT4, refclassid OID, refobjid OID, refobjsubid
        INT4, deptype CHAR,
    ]
    pg_description 2609 'r' comments::description [
        objoid OID, classoid OID, objsubid INT4, description TEXT,
    ]
    pg_enum 3501 'r' enums::rows [
        oid OID, enumtypid OID, enumsortorder FLOAT4, enumlabel NAME,
    ]
    pg_event_trigger 3466 'r' none [
        oid OID, evtname NAME, evtevent NAME, evtowner OID, evtfoid OID, evtenabled CHAR,
        evttags TEXTS,
    ]
    pg_extension 3079 'r' statements::extension [
        oid OID, extname NAME, extowner OID, extnamespace OID, extrelocatable BOOL,
        extversion TEXT, extconfig OIDS, extcondition TEXTS,
    ]
    pg_foreign_data_wrapper 2328 'r' none [
        oid OID, fdwname NAME, fdwowner OID, fdwhandler OID, fdwvalidator OID, fdwacl
        TEXTS, fdwoptions TEXTS,
    ]
    pg_foreign_server 1417 'r' none [
        oid OID, srvname NAME, srvowner OID, srvfdw OID, srvtype TEXT, srvversion TEXT,
        srvacl TEXTS, srvoptions TEXTS,
    ]
    pg_foreign_table 3118 'r' none [
        ftrelid OID, ftserver OID, ftoptions TEXTS,
    ]
    pg_get_keywords 1686 'v' keywords::rows [
        word TEXT, catcode CHAR, barelabel BOOL, catdesc TEXT, baredesc TEXT,
    ]
    pg_group 12010 'v' grants::groups [
        groname NAME, grosysid OID, grolist OIDS,
    ]
    pg_index 2610 'r' relations::index [
        indexrelid OID, indrelid OID, indnatts INT2, indnkeyatts INT2, indisunique BOOL,
        indnullsnotdistinct BOOL, indisprimary BOOL, indisexclusion BOOL, indimmediate
        BOOL, indisclustered BOOL, indisvalid BOOL, indcheckxmin BOOL, indisready BOOL,
        indislive BOOL, indisreplident BOOL, indkey INT2VECTOR, indcollation OIDVECTOR,
        indclass OIDVECTOR, indoption INT2VECTOR, indexprs TEXT, indpred TEXT,
    ]
    pg_index_keys 9001 'v' relations::index_keys [
        indexrelid OID, x INT2, n INT4,
    ]
    pg_indexes 12043 'v' views::index_list [
        schemaname NAME, tablename NAME, indexname NAME, tablespace NAME, indexdef TEXT,
    ]
    pg_inherits 2611 'r' none [
        inhrelid OID, inhparent OID, inhseqno INT4, inhdetachpending BOOL,
    ]
    pg_language 2612 'r' fixed::language [
        oid OID, lanname NAME, lanowner OID, lanispl BOOL, lanpltrusted BOOL,
        lanplcallfoid OID, laninline OID, lanvalidator OID, lanacl TEXTS,
    ]
    pg_largeobject_metadata 2995 'r' none [
        oid OID, lomowner OID, lomacl TEXTS,
    ]
    pg_locks 12073 'v' views::locks [
        locktype TEXT, database OID, relation OID, page INT4, tuple INT2, virtualxid TEXT,
        transactionid OID, classid OID, objid OID, objsubid INT2, virtualtransaction TEXT,
        pid INT4, mode TEXT, granted BOOL, fastpath BOOL, waitstart TIMESTAMPTZ,
    ]
    pg_matviews 12038 'v' user_views::stored [
        schemaname NAME, matviewname NAME, matviewowner NAME, tablespace NAME, hasindexes
        BOOL, ispopulated BOOL, definition TEXT,
    ]
    pg_namespace 2615 'r' fixed::namespace [
        oid OID, nspname NAME, nspowner OID, nspacl TEXTS,
    ]
    pg_opclass 2616 'r' fixed::opclass [
        oid OID, opcmethod OID, opcname NAME, opcnamespace OID, opcowner OID, opcfamily
        OID, opcintype OID, opcdefault BOOL, opckeytype OID,
    ]
    pg_operator 2617 'r' none [
        oid OID, oprname NAME, oprnamespace OID, oprowner OID, oprkind CHAR, oprcanmerge
        BOOL, oprcanhash BOOL, oprleft OID, oprright OID, oprresult OID, oprcom OID,
        oprnegate OID, oprcode REGPROC, oprrest REGPROC, oprjoin REGPROC,
    ]
    pg_opfamily 2753 'r' fixed::opfamily [
        oid OID, opfmethod OID, opfname NAME, opfnamespace OID, opfowner OID,
    ]
    pg_partitioned_table 3350 'r' none [
        partrelid OID, partstrat CHAR, partnatts INT2, partdefid OID, partattrs INT2VECTOR,
        partclass OIDVECTOR, partcollation OIDVECTOR, partexprs TEXT,
    ]
    pg_policies 12018 'v' policies::list [
        schemaname NAME, tablename NAME, policyname NAME, permissive TEXT, roles NAMES,
        cmd TEXT, qual TEXT, with_check TEXT,
    ]
    pg_policy 3256 'r' policies::rows [
        oid OID, polname NAME, polrelid OID, polcmd CHAR, polpermissive BOOL, polroles
        OIDS, polqual TEXT, polwithcheck TEXT,
    ]
    pg_prepared_statements 12095 'v' own::statements [
        name TEXT, statement TEXT, prepare_time TIMESTAMPTZ, parameter_types REGTYPES,
        from_sql BOOL, generic_plans INT8, custom_plans INT8,
    ]
    pg_prepared_xacts 12090 'v' none [
        transaction OID, gid TEXT, prepared TIMESTAMPTZ, owner NAME, database NAME,
    ]
    pg_proc 1255 'r' procs::rows [
        oid OID, proname NAME, pronamespace OID, proowner OID, prolang OID, procost
        FLOAT4, prorows FLOAT4, provariadic OID, prosupport REGPROC, prokind CHAR, prosecdef
        BOOL, proleakproof BOOL, proisstrict BOOL, proretset BOOL, provolatile CHAR,
        proparallel CHAR, pronargs INT2, pronargdefaults INT2, prorettype OID, proargtypes
        OIDVECTOR, proallargtypes OIDS, proargmodes CHARS, proargnames TEXTS, proargdefaults
        TEXT, protrftypes OIDS, prosrc TEXT, probin TEXT, prosqlbody TEXT, proconfig
        TEXTS, proacl TEXTS,
    ]
    pg_publication 6104 'r' none [
        oid OID, pubname NAME, pubowner OID, puballtables BOOL, pubinsert BOOL, pubupdate
        BOOL, pubdelete BOOL, pubtruncate BOOL, pubviaroot BOOL,
    ]
    pg_publication_namespace 6237 'r' none [
        oid OID, pnpubid OID, pnnspid OID,
    ]
    pg_publication_rel 6106 'r' none [
        oid OID, prpubid OID, prrelid OID, prqual TEXT, prattrs INT2S,
    ]
    pg_range 3541 'r' fixed::range [
        rngtypid OID, rngsubtype OID, rngmultitypid OID, rngcollation OID, rngsubopc OID,
        rngcanonical REGPROC, rngsubdiff REGPROC,
    ]
    pg_rewrite 2618 'r' user_views::rules [
        oid OID, rulename NAME, ev_class OID, ev_type CHAR, ev_enabled CHAR, is_instead
        BOOL, ev_qual TEXT, ev_action TEXT,
    ]
    pg_roles 12000 'v' grants::roles [
        rolname NAME, rolsuper BOOL, rolinherit BOOL, rolcreaterole BOOL, rolcreatedb
        BOOL, rolcanlogin BOOL, rolreplication BOOL, rolconnlimit INT4, rolpassword TEXT,
        rolvaliduntil TIMESTAMPTZ, rolbypassrls BOOL, rolconfig TEXTS, oid OID,
    ]
    pg_rules 12023 'v' none [
        schemaname NAME, tablename NAME, rulename NAME, definition TEXT,
    ]
    pg_seclabel 3596 'r' none [
        objoid OID, classoid OID, objsubid INT4, provider TEXT, label TEXT,
    ]
    pg_sequence 2224 'r' relations::sequence [
        seqrelid OID, seqtypid OID, seqstart INT8, seqincrement INT8, seqmax INT8, seqmin
        INT8, seqcache INT8, seqcycle BOOL,
    ]
    pg_sequences 12048 'v' views::sequences [
        schemaname NAME, sequencename NAME, sequenceowner NAME, data_type REGTYPE, start_value
        INT8, min_value INT8, max_value INT8, increment_by INT8, cycle BOOL, cache_size
        INT8, last_value INT8,
    ]
    pg_settings 12104 'v' views::settings [
        name TEXT, setting TEXT, unit TEXT, category TEXT, short_desc TEXT, extra_desc
        TEXT, context TEXT, vartype TEXT, source TEXT, min_val TEXT, max_val TEXT,
        enumvals TEXTS, boot_val TEXT, reset_val TEXT, sourcefile TEXT, sourceline INT4,
        pending_restart BOOL,
    ]
    pg_shadow 12005 'v' grants::shadow [
        usename NAME, usesysid OID, usecreatedb BOOL, usesuper BOOL, userepl BOOL,
        usebypassrls BOOL, passwd TEXT, valuntil TIMESTAMPTZ, useconfig TEXTS,
    ]
    pg_shdepend 1214 'r' none [
        dbid OID, classid OID, objid OID, objsubid INT4, refclassid OID, refobjid OID,
        deptype CHAR,
    ]
    pg_shdescription 2396 'r' comments::shared_description [
        objoid OID, classoid OID, description TEXT,
    ]
    pg_stat_activity 12222 'v' views::activity [
        datid OID, datname NAME, pid INT4, leader_pid INT4, usesysid OID, usename NAME,
        application_name TEXT, client_addr INET, client_hostname TEXT, client_port INT4,
        backend_start TIMESTAMPTZ, xact_start TIMESTAMPTZ, query_start TIMESTAMPTZ,
        state_change TIMESTAMPTZ, wait_event_type TEXT, wait_event TEXT, state TEXT,
        backend_xid OID, backend_xmin OID, query_id INT8, query TEXT, backend_type TEXT,
    ]
    pg_stat_all_tables 12142 'v' views::table_counts [
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8,
        idx_scan INT8, idx_tup_fetch INT8, n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8,
        n_tup_hot_upd INT8, n_live_tup INT8, n_dead_tup INT8, n_mod_since_analyze INT8,
        n_ins_since_vacuum INT8, last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ,
        last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count INT8,
        autovacuum_count INT8, analyze_count INT8, autoanalyze_count INT8,
    ]
    pg_stat_database 12266 'v' views::database_counts [
        datid OID, datname NAME, numbackends INT4, xact_commit INT8, xact_rollback INT8,
        blks_read INT8, blks_hit INT8, tup_returned INT8, tup_fetched INT8, tup_inserted
        INT8, tup_updated INT8, tup_deleted INT8, conflicts INT8, temp_files INT8,
        temp_bytes INT8, deadlocks INT8, checksum_failures INT8, checksum_last_failure
        TIMESTAMPTZ, blk_read_time FLOAT8, blk_write_time FLOAT8, session_time FLOAT8,
        active_time FLOAT8, idle_in_transaction_time FLOAT8, sessions INT8,
        sessions_abandoned INT8, sessions_fatal INT8, sessions_killed INT8, stats_reset
        TIMESTAMPTZ,
    ]
    pg_stat_statements 13990 'v' statements::rows [
        userid OID, dbid OID, toplevel BOOL, queryid INT8, query TEXT, plans INT8,
        total_plan_time FLOAT8, min_plan_time FLOAT8, max_plan_time FLOAT8, mean_plan_time
        FLOAT8, stddev_plan_time FLOAT8, calls INT8, total_exec_time FLOAT8, min_exec_time
        FLOAT8, max_exec_time FLOAT8, mean_exec_time FLOAT8, stddev_exec_time FLOAT8, rows
        INT8, shared_blks_hit INT8, shared_blks_read INT8, shared_blks_dirtied INT8,
        shared_blks_written INT8, local_blks_hit INT8, local_blks_read INT8,
        local_blks_dirtied INT8, local_blks_written INT8, temp_blks_read INT8,
        temp_blks_written INT8, blk_read_time FLOAT8, blk_write_time FLOAT8,
        temp_blk_read_time FLOAT8, temp_blk_write_time FLOAT8, wal_records INT8, wal_fpi
        INT8, wal_bytes NUMERIC, jit_functions INT8, jit_generation_time FLOAT8,
        jit_inlining_count INT8, jit_inlining_time FLOAT8, jit_optimization_count INT8,
        jit_optimization_time FLOAT8, jit_emission_count INT8, jit_emission_time FLOAT8,
    ]
    pg_stat_user_indexes 12192 'v' views::index_counts [
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_scan INT8, idx_tup_read INT8, idx_tup_fetch INT8,
    ]
    pg_stat_user_tables 12161 'v' views::table_counts [
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8,
        idx_scan INT8, idx_tup_fetch INT8, n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8,
        n_tup_hot_upd INT8, n_live_tup INT8, n_dead_tup INT8, n_mod_since_analyze INT8,
        n_ins_since_vacuum INT8, last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ,
        last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count INT8,
        autovacuum_count INT8, analyze_count INT8, autoanalyze_count INT8,
    ]
    pg_statio_user_tables 12179 'v' views::table_blocks [
        relid OID, schemaname NAME, relname NAME, heap_blks_read INT8, heap_blks_hit INT8,
        idx_blks_read INT8, idx_blks_hit INT8, toast_blks_read INT8, toast_blks_hit INT8,
        tidx_blks_read INT8, tidx_blks_hit INT8,
    ]
    pg_statistic_ext 3381 'r' none [
        oid OID, stxrelid OID, stxname NAME, stxnamespace OID, stxowner OID, stxstattarget
        INT4, stxkeys INT2VECTOR, stxkind CHARS, stxexprs TEXT,
    ]
    pg_stats 12053 'v' statistics::stats [
        schemaname NAME, tablename NAME, attname NAME, inherited BOOL, null_frac FLOAT4,
        avg_width INT4, n_distinct FLOAT4, most_common_vals TEXT, most_common_freqs
        FLOAT8S, histogram_bounds TEXT, correlation FLOAT4, most_common_elems TEXT,
        most_common_elem_freqs FLOAT8S, elem_count_histogram FLOAT8S,
    ]
    pg_subscription 6100 'r' none [
        oid OID, subdbid OID, subskiplsn TEXT, subname NAME, subowner OID, subenabled
        BOOL, subbinary BOOL, substream BOOL, subtwophasestate CHAR, subdisableonerr BOOL,
        subconninfo TEXT, subslotname NAME, subsynccommit TEXT, subpublications TEXTS,
    ]
    pg_tables 12033 'v' views::tables [
        schemaname NAME, tablename NAME, tableowner NAME, tablespace NAME, hasindexes
        BOOL, hasrules BOOL, hastriggers BOOL, rowsecurity BOOL,
    ]
    pg_tablespace 1213 'r' fixed::tablespace [
        oid OID, spcname NAME, spcowner OID, spcacl TEXTS, spcoptions TEXTS,
    ]
    pg_timezone_names 12108 'v' fixed::timezone_names [
        name TEXT, abbrev TEXT, utc_offset INTERVAL, is_dst BOOL,
    ]
    pg_trigger 2620 'r' none [
        oid OID, tgrelid OID, tgparentid OID, tgname NAME, tgfoid OID, tgtype INT2,
        tgenabled CHAR, tgisinternal BOOL, tgconstrrelid OID, tgconstrindid OID,
        tgconstraint OID, tgdeferrable BOOL, tginitdeferred BOOL, tgnargs INT2, tgattr
        INT2VECTOR, tgargs BYTEA, tgqual TEXT, tgoldtable NAME, tgnewtable NAME,
    ]
    pg_ts_config 3602 'r' none [
        oid OID, cfgname NAME, cfgnamespace OID, cfgowner OID, cfgparser OID,
    ]
    pg_type 1247 'r' types::rows [
        oid OID, typname NAME, typnamespace OID, typowner OID, typlen INT2, typbyval BOOL,
        typtype CHAR, typcategory CHAR, typispreferred BOOL, typisdefined BOOL, typdelim
        CHAR, typrelid OID, typsubscript REGPROC, typelem OID, typarray OID, typinput REGPROC,
        typoutput REGPROC, typreceive REGPROC, typsend REGPROC, typmodin REGPROC, typmodout REGPROC,
        typanalyze REGPROC, typalign CHAR, typstorage CHAR, typnotnull BOOL, typbasetype OID,
        typtypmod INT4, typndims INT4, typcollation OID, typdefaultbin TEXT, typdefault
        TEXT, typacl TEXTS,
    ]
    pg_user 12014 'v' grants::users [
        usename NAME, usesysid OID, usecreatedb BOOL, usesuper BOOL, userepl BOOL,
        usebypassrls BOOL, passwd TEXT, valuntil TIMESTAMPTZ, useconfig TEXTS,
    ]
    pg_views 12028 'v' user_views::list [
        schemaname NAME, viewname NAME, viewowner NAME, definition TEXT,
    ]
};

/// Views of schema `information_schema`, in order of name.
pub(super) static INFORMATION: &[VirtualTable] = tables! { "information_schema":
    applicable_roles 13236 'v' grants::applicable_roles [
        grantee NAME, role_name NAME, is_grantable TEXT,
    ]
    check_constraints 13260 'v' schema::check_constraints [
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        check_clause TEXT,
    ]
    column_privileges 13285 'v' grants::column_privileges [
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name
        NAME, column_name NAME, privilege_type TEXT, is_grantable TEXT,
    ]
    columns 13295 'v' schema::columns [
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        ordinal_position INT4, column_default TEXT, is_nullable TEXT, data_type TEXT,
        character_maximum_length INT4, character_octet_length INT4, numeric_precision
        INT4, numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4,
        interval_type TEXT, interval_precision INT4, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME, collation_catalog NAME,
        collation_schema NAME, collation_name NAME, domain_catalog NAME, domain_schema
        NAME, domain_name NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME,
        scope_catalog NAME, scope_schema NAME, scope_name NAME, maximum_cardinality INT4,
        dtd_identifier NAME, is_self_referencing TEXT, is_identity TEXT,
        identity_generation TEXT, identity_start TEXT, identity_increment TEXT,
        identity_maximum TEXT, identity_minimum TEXT, identity_cycle TEXT, is_generated
        TEXT, generation_expression TEXT, is_updatable TEXT,
    ]
    constraint_column_usage 13300 'v' schema::constraint_column_usage [
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
    ]
    constraint_table_usage 13305 'v' schema::constraint_table_usage [
        table_catalog NAME, table_schema NAME, table_name NAME, constraint_catalog NAME,
        constraint_schema NAME, constraint_name NAME,
    ]
    domains 13320 'v' domains::rows [
        domain_catalog NAME, domain_schema NAME, domain_name NAME, data_type TEXT,
        character_maximum_length INT4, character_octet_length INT4, character_set_catalog
        NAME, character_set_schema NAME, character_set_name NAME, collation_catalog NAME,
        collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4,
        interval_type TEXT, interval_precision INT4, domain_default TEXT, udt_catalog
        NAME, udt_schema NAME, udt_name NAME, scope_catalog NAME, scope_schema NAME,
        scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
    ]
    enabled_roles 13325 'v' grants::enabled_roles [
        role_name NAME,
    ]
    information_schema_catalog_name 13227 'v' schema::catalog_name [
        catalog_name NAME,
    ]
    key_column_usage 13329 'v' schema::key_column_usage [
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        ordinal_position INT4, position_in_unique_constraint INT4,
    ]
    parameters 13334 'v' routines::parameters [
        specific_catalog NAME, specific_schema NAME, specific_name NAME, ordinal_position
        INT4, parameter_mode TEXT, is_result TEXT, as_locator TEXT, parameter_name NAME,
        data_type TEXT, character_maximum_length INT4, character_octet_length INT4,
        character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME,
        numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        datetime_precision INT4, interval_type TEXT, interval_precision INT4, udt_catalog
        NAME, udt_schema NAME, udt_name NAME, scope_catalog NAME, scope_schema NAME,
        scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME, parameter_default
        TEXT,
    ]
    referential_constraints 13339 'v' schema::referential_constraints [
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        unique_constraint_catalog NAME, unique_constraint_schema NAME,
        unique_constraint_name NAME, match_option TEXT, update_rule TEXT, delete_rule TEXT,
    ]
    routine_privileges 13353 'v' grants::routine_privileges [
        grantor NAME, grantee NAME, specific_catalog NAME, specific_schema NAME,
        specific_name NAME, routine_catalog NAME, routine_schema NAME, routine_name NAME,
        privilege_type TEXT, is_grantable TEXT,
    ]
    routines 13377 'v' routines::routines [
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog
        NAME, routine_schema NAME, routine_name NAME, routine_type TEXT, module_catalog
        NAME, module_schema NAME, module_name NAME, udt_catalog NAME, udt_schema NAME,
        udt_name NAME, data_type TEXT, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema
        NAME, character_set_name NAME, collation_catalog NAME, collation_schema NAME,
        collation_name NAME, numeric_precision INT4, numeric_precision_radix INT4,
        numeric_scale INT4, datetime_precision INT4, interval_type TEXT,
        interval_precision INT4, type_udt_catalog NAME, type_udt_schema NAME,
        type_udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME,
        maximum_cardinality INT4, dtd_identifier NAME, routine_body TEXT,
        routine_definition TEXT, external_name TEXT, external_language TEXT,
        parameter_style TEXT, is_deterministic TEXT, sql_data_access TEXT, is_null_call
        TEXT, sql_path TEXT, schema_level_routine TEXT, max_dynamic_result_sets INT4,
        is_user_defined_cast TEXT, is_implicitly_invocable TEXT, security_type TEXT,
        to_sql_specific_catalog NAME, to_sql_specific_schema NAME, to_sql_specific_name
        NAME, as_locator TEXT, created TIMESTAMPTZ, last_altered TIMESTAMPTZ,
        new_savepoint_level TEXT, is_udt_dependent TEXT, result_cast_from_data_type TEXT,
        result_cast_as_locator TEXT, result_cast_char_max_length INT4,
        result_cast_char_octet_length INT4, result_cast_char_set_catalog NAME,
        result_cast_char_set_schema NAME, result_cast_char_set_name NAME,
        result_cast_collation_catalog NAME, result_cast_collation_schema NAME,
        result_cast_collation_name NAME, result_cast_numeric_precision INT4,
        result_cast_numeric_precision_radix INT4, result_cast_numeric_scale INT4,
        result_cast_datetime_precision INT4, result_cast_interval_type TEXT,
        result_cast_interval_precision INT4, result_cast_type_udt_catalog NAME,
        result_cast_type_udt_schema NAME, result_cast_type_udt_name NAME,
        result_cast_scope_catalog NAME, result_cast_scope_schema NAME,
        result_cast_scope_name NAME, result_cast_maximum_cardinality INT4,
        result_cast_dtd_identifier NAME,
    ]
    schemata 13382 'v' schema::schemata [
        catalog_name NAME, schema_name NAME, schema_owner NAME,
        default_character_set_catalog NAME, default_character_set_schema NAME,
        default_character_set_name NAME, sql_path TEXT,
    ]
    sequences 13386 'v' schema::sequences [
        sequence_catalog NAME, sequence_schema NAME, sequence_name NAME, data_type TEXT,
        numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        start_value TEXT, minimum_value TEXT, maximum_value TEXT, increment TEXT,
        cycle_option TEXT,
    ]
    table_constraints 13411 'v' schema::table_constraints [
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        table_catalog NAME, table_schema NAME, table_name NAME, constraint_type TEXT,
        is_deferrable TEXT, initially_deferred TEXT, enforced TEXT, nulls_distinct TEXT,
    ]
    table_privileges 13416 'v' grants::table_privileges [
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name
        NAME, privilege_type TEXT, is_grantable TEXT, with_hierarchy TEXT,
    ]
    tables 13425 'v' schema::tables [
        table_catalog NAME, table_schema NAME, table_name NAME, table_type TEXT,
        self_referencing_column_name NAME, reference_generation TEXT,
        user_defined_type_catalog NAME, user_defined_type_schema NAME,
        user_defined_type_name NAME, is_insertable_into TEXT, is_typed TEXT, commit_action
        TEXT,
    ]
    triggers 13440 'v' none [
        trigger_catalog NAME, trigger_schema NAME, trigger_name NAME, event_manipulation
        TEXT, event_object_catalog NAME, event_object_schema NAME, event_object_table
        NAME, action_order INT4, action_condition TEXT, action_statement TEXT,
        action_orientation TEXT, action_timing TEXT, action_reference_old_table NAME,
        action_reference_new_table NAME, action_reference_old_row NAME,
        action_reference_new_row NAME, created TIMESTAMPTZ,
    ]
    views 13483 'v' user_views::information [
        table_catalog NAME, table_schema NAME, table_name NAME, view_definition TEXT,
        check_option TEXT, is_updatable TEXT, is_insertable_into TEXT,
        is_trigger_updatable TEXT, is_trigger_deletable TEXT, is_trigger_insertable_into
        TEXT,
    ]
};
