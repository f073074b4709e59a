//! Signatures of the functions over the system catalog. The evaluator knows these functions by name
//! only ([`Func::Catalog`](crate::Func::Catalog)); `pg_catalog` computes them.

use base::Reg;
use base::Type::{self, Bool, Int2, Int4, Int8, Name, Oid, Text, Xid};

/// What a function takes and gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Signature {
    /// Name in lower case, without schema.
    pub name: &'static str,
    /// Types of all arguments.
    pub args: &'static [Type],
    /// How many of them must be given.
    pub required: usize,
    /// Type of the result.
    pub returns: Type,
}

const REGCLASS: Type = Type::Reg(Reg::Class);
const REGTYPE: Type = Type::Reg(Reg::Type);
const REGPROC: Type = Type::Reg(Reg::Proc);
const REGPROCEDURE: Type = Type::Reg(Reg::Procedure);
const REGNAMESPACE: Type = Type::Reg(Reg::Namespace);
const REGROLE: Type = Type::Reg(Reg::Role);
const REGOPER: Type = Type::Reg(Reg::Oper);
const REGOPERATOR: Type = Type::Reg(Reg::Operator);
const LETTER: Type = Type::InternalChar;
const TEXTS: Type = Type::Array(base::types::ArrayKind::Text);
const OIDS: Type = Type::Array(base::types::ArrayKind::Oid);
const INT4S: Type = Type::Array(base::types::ArrayKind::Int4);
const TIMESTAMPTZ: Type = Type::Timestamptz(None);

/// Argument types in parentheses as a slice.
macro_rules! types {
    (($($arg:ident),*)) => {
        &[$($arg),*]
    };
}

/// Families of functions with equal signatures: names => (arguments) number required, result.
macro_rules! signatures {
    ($($($name:literal)+ => $args:tt $required:literal $returns:ident;)*) => {
        &[$($(Signature {
            name: $name,
            args: types!($args),
            required: $required,
            returns: $returns,
        },)+)*]
    };
}

/// All functions. A name may occur more than once; the first whose arguments fit wins.
pub static SIGNATURES: &[Signature] = signatures! {
    "format_type" => (Oid, Int4) 2 Text;
    "oidvectortypes" => (OIDS) 1 Text;
    "acldefault" => (LETTER, Oid) 2 TEXTS;
    "pg_blocking_pids" "pg_safe_snapshot_blocking_pids" => (Int4) 1 INT4S;
    "pg_get_userbyid" => (Oid) 1 Name;
    "pg_table_is_visible" "pg_type_is_visible" "pg_function_is_visible" "pg_operator_is_visible"
    "pg_opclass_is_visible" "pg_opfamily_is_visible" "pg_collation_is_visible"
    "pg_conversion_is_visible" "pg_statistics_obj_is_visible" "pg_ts_config_is_visible"
    "pg_ts_dict_is_visible" "pg_ts_parser_is_visible" "pg_ts_template_is_visible"
        => (Oid) 1 Bool;
    "pg_get_expr" => (Text, Oid, Bool) 2 Text;
    "pg_describe_object" => (Oid, Oid, Int4) 3 Text;
    "pg_get_indexdef" => (Oid, Int4, Bool) 1 Text;
    "pg_get_constraintdef" "pg_get_viewdef" "pg_get_ruledef" "pg_get_triggerdef"
        => (Oid, Bool) 1 Text;
    "pg_get_partkeydef" "pg_get_statisticsobjdef_columns" "pg_get_statisticsobjdef"
    "pg_get_function_arguments" "pg_get_function_identity_arguments" "pg_get_function_result"
    "pg_get_functiondef" "pg_get_function_sqlbody" "pg_tablespace_location"
    "pg_get_partition_constraintdef"
        => (Oid) 1 Text;
    "pg_get_serial_sequence" => (Text, Text) 2 Text;
    "obj_description" => (Oid, Name) 1 Text;
    "shobj_description" => (Oid, Name) 2 Text;
    "col_description" => (Oid, Int4) 2 Text;
    "pg_encoding_to_char" => (Int4) 1 Name;
    "pg_char_to_encoding" => (Name) 1 Int4;
    "pg_client_encoding" "getdatabaseencoding" => () 0 Name;
    "pg_table_size" "pg_total_relation_size" "pg_indexes_size" => (REGCLASS) 1 Int8;
    "pg_relation_size" => (REGCLASS, Text) 1 Int8;
    "pg_database_size" => (Oid) 1 Int8;
    "pg_database_size" => (Name) 1 Int8;
    "pg_size_pretty" => (Int8) 1 Text;
    "pg_relation_filenode" => (REGCLASS) 1 Oid;
    "has_table_privilege" "has_sequence_privilege" "has_database_privilege"
    "has_schema_privilege" "has_function_privilege" "has_language_privilege"
    "has_tablespace_privilege" "has_type_privilege" "has_any_column_privilege" "pg_has_role"
    "has_foreign_data_wrapper_privilege" "has_server_privilege"
        => (Oid, Text) 2 Bool;
    "has_table_privilege" "has_sequence_privilege" "has_database_privilege"
    "has_schema_privilege" "has_function_privilege" "has_language_privilege"
    "has_tablespace_privilege" "has_type_privilege" "has_any_column_privilege" "pg_has_role"
    "has_foreign_data_wrapper_privilege" "has_server_privilege"
        => (Text, Text) 2 Bool;
    "has_table_privilege" "has_sequence_privilege" "has_database_privilege"
    "has_schema_privilege" "has_function_privilege" "has_language_privilege"
    "has_tablespace_privilege" "has_type_privilege" "has_any_column_privilege" "pg_has_role"
    "has_foreign_data_wrapper_privilege" "has_server_privilege"
        => (Name, Oid, Text) 3 Bool;
    "has_table_privilege" "has_sequence_privilege" "has_database_privilege"
    "has_schema_privilege" "has_function_privilege" "has_language_privilege"
    "has_tablespace_privilege" "has_type_privilege" "has_any_column_privilege" "pg_has_role"
    "has_foreign_data_wrapper_privilege" "has_server_privilege"
        => (Name, Text, Text) 3 Bool;
    "has_table_privilege" "has_sequence_privilege" "has_database_privilege"
    "has_schema_privilege" "has_function_privilege" "has_language_privilege"
    "has_tablespace_privilege" "has_type_privilege" "has_any_column_privilege" "pg_has_role"
    "has_foreign_data_wrapper_privilege" "has_server_privilege"
        => (Oid, Oid, Text) 3 Bool;
    "has_table_privilege" "has_sequence_privilege" "has_database_privilege"
    "has_schema_privilege" "has_function_privilege" "has_language_privilege"
    "has_tablespace_privilege" "has_type_privilege" "has_any_column_privilege" "pg_has_role"
    "has_foreign_data_wrapper_privilege" "has_server_privilege"
        => (Oid, Text, Text) 3 Bool;
    "has_parameter_privilege" => (Text, Text) 2 Bool;
    "has_parameter_privilege" => (Name, Text, Text) 3 Bool;
    "has_parameter_privilege" => (Oid, Text, Text) 3 Bool;
    "has_column_privilege" => (Name, Oid, Int2, Text) 4 Bool;
    "has_column_privilege" => (Name, Oid, Text, Text) 4 Bool;
    "has_column_privilege" => (Name, Text, Int2, Text) 4 Bool;
    "has_column_privilege" => (Name, Text, Text, Text) 4 Bool;
    "has_column_privilege" => (Oid, Oid, Int2, Text) 4 Bool;
    "has_column_privilege" => (Oid, Oid, Text, Text) 4 Bool;
    "has_column_privilege" => (Oid, Text, Int2, Text) 4 Bool;
    "has_column_privilege" => (Oid, Text, Text, Text) 4 Bool;
    "has_column_privilege" => (Oid, Int2, Text) 3 Bool;
    "has_column_privilege" => (Oid, Text, Text) 3 Bool;
    "has_column_privilege" => (Text, Int2, Text) 3 Bool;
    "has_column_privilege" => (Text, Text, Text) 3 Bool;
    "to_regclass" "regclassin" => (Text) 1 REGCLASS;
    "regclassout" => (REGCLASS) 1 Text;
    "to_regtype" "regtypein" => (Text) 1 REGTYPE;
    "regtypeout" => (REGTYPE) 1 Text;
    "to_regnamespace" "regnamespacein" => (Text) 1 REGNAMESPACE;
    "regnamespaceout" => (REGNAMESPACE) 1 Text;
    "to_regproc" "regprocin" => (Text) 1 REGPROC;
    "regprocout" => (REGPROC) 1 Text;
    "to_regprocedure" "regprocedurein" => (Text) 1 REGPROCEDURE;
    "regprocedureout" => (REGPROCEDURE) 1 Text;
    "to_regrole" "regrolein" => (Text) 1 REGROLE;
    "regroleout" => (REGROLE) 1 Text;
    "regoperin" => (Text) 1 REGOPER;
    "regoperout" => (REGOPER) 1 Text;
    "regoperatorin" => (Text) 1 REGOPERATOR;
    "regoperatorout" => (REGOPERATOR) 1 Text;
    "pg_is_in_recovery" "pg_is_wal_replay_paused" => () 0 Bool;
    "pg_postmaster_start_time" "pg_conf_load_time" => () 0 TIMESTAMPTZ;
    "pg_my_temp_schema" => () 0 Oid;
    "pg_is_other_temp_schema" => (Oid) 1 Bool;
    "pg_relation_is_publishable" "row_security_active" => (REGCLASS) 1 Bool;
    "pg_relation_is_updatable" => (REGCLASS, Bool) 2 Int4;
    "pg_column_is_updatable" => (REGCLASS, Int2, Bool) 3 Bool;
    "txid_current" "pg_current_xact_id" => () 0 Int8;
    "age" "mxid_age" => (Xid) 1 Int4;
    "age" "mxid_age" => (Oid) 1 Int4;
    "pg_stat_get_numscans" "pg_stat_get_tuples_returned" "pg_stat_get_tuples_fetched"
    "pg_stat_get_tuples_inserted" "pg_stat_get_tuples_updated" "pg_stat_get_tuples_deleted"
    "pg_stat_get_live_tuples" "pg_stat_get_dead_tuples" "pg_stat_get_blocks_fetched"
    "pg_stat_get_blocks_hit" "pg_stat_get_db_xact_commit" "pg_stat_get_db_xact_rollback"
        => (Oid) 1 Int8;
    "trellis_shard_of" => (REGCLASS, Text, Text, Text, Text) 2 Text;
    "trellis_node_of" => (REGCLASS, Text, Text, Text, Text) 2 Int4;
    "trellis_placement_version" => (REGCLASS) 1 Int8;
    "pg_index_column_has_property" => (REGCLASS, Int4, Text) 3 Bool;
    "pg_index_has_property" => (REGCLASS, Text) 2 Bool;
    "pg_indexam_has_property" => (Oid, Text) 2 Bool;
};
