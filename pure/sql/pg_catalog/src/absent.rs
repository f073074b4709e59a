//! Tables and views of PostgreSQL's catalog about things that do not exist here: clients ask for
//! them by name. They have PostgreSQL 15's columns; nearly all are empty.

use super::list::{kinds, none, tables};
use super::{VirtualColumn, VirtualTable, domains, grants, information, statements, views};

/// Tables and views of schema `pg_catalog`, in order of name.
pub(super) static SYSTEM: &[VirtualTable] = tables! { "pg_catalog":
    pg_available_extension_versions 12085 'v' statements::versions [
        name NAME, version TEXT, installed BOOL, superuser BOOL, trusted BOOL, relocatable BOOL,
        schema NAME, requires NAMES, comment TEXT,
    ]
    pg_file_settings 12110 'v' none [
        sourcefile TEXT, sourceline INT4, seqno INT4, name TEXT, setting TEXT, applied BOOL,
        error TEXT,
    ]
    pg_hba_file_rules 12114 'v' none [
        line_number INT4, type TEXT, database TEXTS, user_name TEXTS, address TEXT,
        netmask TEXT, auth_method TEXT, options TEXTS, error TEXT,
    ]
    pg_init_privs 3394 'r' none [
        objoid OID, classoid OID, objsubid INT4, privtype CHAR, initprivs TEXTS,
    ]
    pg_largeobject 2613 'r' none [
        loid OID, pageno INT4, data BYTEA,
    ]
    pg_options_to_table 9002 'v' none [
        option_name TEXT, option_value TEXT,
    ]
    pg_parameter_acl 6243 'r' none [
        oid OID, parname TEXT, paracl TEXTS,
    ]
    pg_publication_tables 12068 'v' none [
        pubname NAME, schemaname NAME, tablename NAME, attnames NAMES, rowfilter TEXT,
    ]
    pg_replication_origin 6000 'r' none [
        roident OID, roname TEXT,
    ]
    pg_replication_origin_status 12332 'v' none [
        local_id OID, external_id TEXT, remote_lsn TEXT, local_lsn TEXT,
    ]
    pg_replication_slots 12257 'v' none [
        slot_name NAME, plugin NAME, slot_type TEXT, datoid OID, database NAME, temporary BOOL,
        active BOOL, active_pid INT4, xmin OID, catalog_xmin OID, restart_lsn TEXT,
        confirmed_flush_lsn TEXT, wal_status TEXT, safe_wal_size INT8, two_phase BOOL,
    ]
    pg_seclabels 12099 'v' none [
        objoid OID, classoid OID, objsubid INT4, objtype TEXT, objnamespace OID, objname TEXT,
        provider TEXT, label TEXT,
    ]
    pg_shseclabel 3592 'r' none [
        objoid OID, classoid OID, provider TEXT, label TEXT,
    ]
    pg_stat_all_indexes 12183 'v' views::index_counts [
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_scan INT8, idx_tup_read INT8, idx_tup_fetch INT8,
    ]
    pg_stat_archiver 12285 'v' none [
        archived_count INT8, last_archived_wal TEXT, last_archived_time TIMESTAMPTZ,
        failed_count INT8, last_failed_wal TEXT, last_failed_time TIMESTAMPTZ,
        stats_reset TIMESTAMPTZ,
    ]
    pg_stat_bgwriter 12289 'v' none [
        checkpoints_timed INT8, checkpoints_req INT8, checkpoint_write_time FLOAT8,
        checkpoint_sync_time FLOAT8, buffers_checkpoint INT8, buffers_clean INT8,
        maxwritten_clean INT8, buffers_backend INT8, buffers_backend_fsync INT8,
        buffers_alloc INT8, stats_reset TIMESTAMPTZ,
    ]
    pg_stat_database_conflicts 12271 'v' none [
        datid OID, datname NAME, confl_tablespace INT8, confl_lock INT8, confl_snapshot INT8,
        confl_bufferpin INT8, confl_deadlock INT8,
    ]
    pg_stat_gssapi 12253 'v' none [
        pid INT4, gss_authenticated BOOL, principal TEXT, encrypted BOOL,
    ]
    pg_stat_progress_analyze 12297 'v' none [
        pid INT4, datid OID, datname NAME, relid OID, phase TEXT, sample_blks_total INT8,
        sample_blks_scanned INT8, ext_stats_total INT8, ext_stats_computed INT8,
        child_tables_total INT8, child_tables_done INT8, current_child_table_relid OID,
    ]
    pg_stat_progress_basebackup 12317 'v' none [
        pid INT4, phase TEXT, backup_total INT8, backup_streamed INT8, tablespaces_total INT8,
        tablespaces_streamed INT8,
    ]
    pg_stat_progress_cluster 12307 'v' none [
        pid INT4, datid OID, datname NAME, relid OID, command TEXT, phase TEXT,
        cluster_index_relid OID, heap_tuples_scanned INT8, heap_tuples_written INT8,
        heap_blks_total INT8, heap_blks_scanned INT8, index_rebuild_count INT8,
    ]
    pg_stat_progress_copy 12322 'v' none [
        pid INT4, datid OID, datname NAME, relid OID, command TEXT, type TEXT,
        bytes_processed INT8, bytes_total INT8, tuples_processed INT8, tuples_excluded INT8,
    ]
    pg_stat_progress_create_index 12312 'v' none [
        pid INT4, datid OID, datname NAME, relid OID, index_relid OID, command TEXT, phase TEXT,
        lockers_total INT8, lockers_done INT8, current_locker_pid INT8, blocks_total INT8,
        blocks_done INT8, tuples_total INT8, tuples_done INT8, partitions_total INT8,
        partitions_done INT8,
    ]
    pg_stat_progress_vacuum 12302 'v' none [
        pid INT4, datid OID, datname NAME, relid OID, phase TEXT, heap_blks_total INT8,
        heap_blks_scanned INT8, heap_blks_vacuumed INT8, index_vacuum_count INT8,
        max_dead_tuples INT8, num_dead_tuples INT8,
    ]
    pg_stat_recovery_prefetch 12240 'v' none [
        stats_reset TIMESTAMPTZ, prefetch INT8, hit INT8, skip_init INT8, skip_new INT8,
        skip_fpw INT8, skip_rep INT8, wal_distance INT4, block_distance INT4, io_depth INT4,
    ]
    pg_stat_replication 12227 'v' none [
        pid INT4, usesysid OID, usename NAME, application_name TEXT, client_addr INET,
        client_hostname TEXT, client_port INT4, backend_start TIMESTAMPTZ, backend_xmin OID,
        state TEXT, sent_lsn TEXT, write_lsn TEXT, flush_lsn TEXT, replay_lsn TEXT,
        write_lag INTERVAL, flush_lag INTERVAL, replay_lag INTERVAL, sync_priority INT4,
        sync_state TEXT, reply_time TIMESTAMPTZ,
    ]
    pg_stat_replication_slots 12262 'v' none [
        slot_name TEXT, spill_txns INT8, spill_count INT8, spill_bytes INT8, stream_txns INT8,
        stream_count INT8, stream_bytes INT8, total_txns INT8, total_bytes INT8,
        stats_reset TIMESTAMPTZ,
    ]
    pg_stat_slru 12232 'v' none [
        name TEXT, blks_zeroed INT8, blks_hit INT8, blks_read INT8, blks_written INT8,
        blks_exists INT8, flushes INT8, truncates INT8, stats_reset TIMESTAMPTZ,
    ]
    pg_stat_ssl 12249 'v' none [
        pid INT4, ssl BOOL, version TEXT, cipher TEXT, bits INT4, client_dn TEXT,
        client_serial FLOAT8, issuer_dn TEXT,
    ]
    pg_stat_subscription 12244 'v' none [
        subid OID, subname NAME, pid INT4, relid OID, received_lsn TEXT,
        last_msg_send_time TIMESTAMPTZ, last_msg_receipt_time TIMESTAMPTZ, latest_end_lsn TEXT,
        latest_end_time TIMESTAMPTZ,
    ]
    pg_stat_subscription_stats 12336 'v' none [
        subid OID, subname NAME, apply_error_count INT8, sync_error_count INT8,
        stats_reset TIMESTAMPTZ,
    ]
    pg_stat_sys_indexes 12188 'v' none [
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_scan INT8, idx_tup_read INT8, idx_tup_fetch INT8,
    ]
    pg_stat_sys_tables 12152 'v' none [
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8,
        idx_scan INT8, idx_tup_fetch INT8, n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8,
        n_tup_hot_upd INT8, n_live_tup INT8, n_dead_tup INT8, n_mod_since_analyze INT8,
        n_ins_since_vacuum INT8, last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ,
        last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count INT8,
        autovacuum_count INT8, analyze_count INT8, autoanalyze_count INT8,
    ]
    pg_stat_user_functions 12275 'v' none [
        funcid OID, schemaname NAME, funcname NAME, calls INT8, total_time FLOAT8,
        self_time FLOAT8,
    ]
    pg_stat_wal 12293 'v' none [
        wal_records INT8, wal_fpi INT8, wal_bytes FLOAT8, wal_buffers_full INT8, wal_write INT8,
        wal_sync INT8, wal_write_time FLOAT8, wal_sync_time FLOAT8, stats_reset TIMESTAMPTZ,
    ]
    pg_stat_wal_receiver 12236 'v' none [
        pid INT4, status TEXT, receive_start_lsn TEXT, receive_start_tli INT4, written_lsn TEXT,
        flushed_lsn TEXT, received_tli INT4, last_msg_send_time TIMESTAMPTZ,
        last_msg_receipt_time TIMESTAMPTZ, latest_end_lsn TEXT, latest_end_time TIMESTAMPTZ,
        slot_name TEXT, sender_host TEXT, sender_port INT4, conninfo TEXT,
    ]
    pg_statio_all_indexes 12196 'v' none [
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_blks_read INT8, idx_blks_hit INT8,
    ]
    pg_statio_all_sequences 12209 'v' none [
        relid OID, schemaname NAME, relname NAME, blks_read INT8, blks_hit INT8,
    ]
    pg_statio_all_tables 12170 'v' views::table_blocks [
        relid OID, schemaname NAME, relname NAME, heap_blks_read INT8, heap_blks_hit INT8,
        idx_blks_read INT8, idx_blks_hit INT8, toast_blks_read INT8, toast_blks_hit INT8,
        tidx_blks_read INT8, tidx_blks_hit INT8,
    ]
    pg_statio_sys_indexes 12201 'v' none [
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_blks_read INT8, idx_blks_hit INT8,
    ]
    pg_statio_sys_sequences 12214 'v' none [
        relid OID, schemaname NAME, relname NAME, blks_read INT8, blks_hit INT8,
    ]
    pg_statio_sys_tables 12175 'v' none [
        relid OID, schemaname NAME, relname NAME, heap_blks_read INT8, heap_blks_hit INT8,
        idx_blks_read INT8, idx_blks_hit INT8, toast_blks_read INT8, toast_blks_hit INT8,
        tidx_blks_read INT8, tidx_blks_hit INT8,
    ]
    pg_statio_user_indexes 12205 'v' none [
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_blks_read INT8, idx_blks_hit INT8,
    ]
    pg_statio_user_sequences 12218 'v' none [
        relid OID, schemaname NAME, relname NAME, blks_read INT8, blks_hit INT8,
    ]
    pg_statistic 2619 'r' none [
        starelid OID, staattnum INT2, stainherit BOOL, stanullfrac FLOAT4, stawidth INT4,
        stadistinct FLOAT4, stakind1 INT2, stakind2 INT2, stakind3 INT2, stakind4 INT2,
        stakind5 INT2, staop1 OID, staop2 OID, staop3 OID, staop4 OID, staop5 OID, stacoll1 OID,
        stacoll2 OID, stacoll3 OID, stacoll4 OID, stacoll5 OID, stanumbers1 FLOAT8S,
        stanumbers2 FLOAT8S, stanumbers3 FLOAT8S, stanumbers4 FLOAT8S, stanumbers5 FLOAT8S,
        stavalues1 TEXT, stavalues2 TEXT, stavalues3 TEXT, stavalues4 TEXT, stavalues5 TEXT,
    ]
    pg_statistic_ext_data 3429 'r' none [
        stxoid OID, stxdinherit BOOL, stxdndistinct TEXT, stxddependencies TEXT, stxdmcv TEXT,
        stxdexpr TEXT,
    ]
    pg_stats_ext 12058 'v' none [
        schemaname NAME, tablename NAME, statistics_schemaname NAME, statistics_name NAME,
        statistics_owner NAME, attnames NAMES, exprs TEXTS, kinds CHARS, inherited BOOL,
        n_distinct TEXT, dependencies TEXT, most_common_vals TEXTS, most_common_val_nulls TEXT,
        most_common_freqs FLOAT8S, most_common_base_freqs FLOAT8S,
    ]
    pg_stats_ext_exprs 12063 'v' none [
        schemaname NAME, tablename NAME, statistics_schemaname NAME, statistics_name NAME,
        statistics_owner NAME, expr TEXT, inherited BOOL, null_frac FLOAT4, avg_width INT4,
        n_distinct FLOAT4, most_common_vals TEXT, most_common_freqs FLOAT8S,
        histogram_bounds TEXT, correlation FLOAT4, most_common_elems TEXT,
        most_common_elem_freqs FLOAT8S, elem_count_histogram FLOAT8S,
    ]
    pg_subscription_rel 6102 'r' none [
        srsubid OID, srrelid OID, srsubstate CHAR, srsublsn TEXT,
    ]
    pg_timezone_abbrevs 12122 'v' none [
        abbrev TEXT, utc_offset INTERVAL, is_dst BOOL,
    ]
    pg_transform 3576 'r' none [
        oid OID, trftype OID, trflang OID, trffromsql REGPROC, trftosql REGPROC,
    ]
    pg_ts_config_map 3603 'r' none [
        mapcfg OID, maptokentype INT4, mapseqno INT4, mapdict OID,
    ]
    pg_ts_dict 3600 'r' none [
        oid OID, dictname NAME, dictnamespace OID, dictowner OID, dicttemplate OID,
        dictinitoption TEXT,
    ]
    pg_ts_parser 3601 'r' none [
        oid OID, prsname NAME, prsnamespace OID, prsstart REGPROC, prstoken REGPROC,
        prsend REGPROC, prsheadline REGPROC, prslextype REGPROC,
    ]
    pg_ts_template 3764 'r' none [
        oid OID, tmplname NAME, tmplnamespace OID, tmplinit REGPROC, tmpllexize REGPROC,
    ]
    pg_user_mapping 1418 'r' none [
        oid OID, umuser OID, umserver OID, umoptions TEXTS,
    ]
    pg_user_mappings 12327 'v' none [
        umid OID, srvid OID, srvname NAME, umuser OID, usename NAME, umoptions TEXTS,
    ]
};

/// Views of schema `information_schema`, in order of name.
pub(super) static INFORMATION: &[VirtualTable] = tables! { "information_schema":
    administrable_role_authorizations 13241 'v' none [
        grantee NAME, role_name NAME, is_grantable TEXT,
    ]
    attributes 13245 'v' information::attributes [
        udt_catalog NAME, udt_schema NAME, udt_name NAME, attribute_name NAME,
        ordinal_position INT4, attribute_default TEXT, is_nullable TEXT, data_type TEXT,
        character_maximum_length INT4, character_octet_length INT4, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME, collation_catalog NAME,
        collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4,
        interval_type TEXT, interval_precision INT4, attribute_udt_catalog NAME,
        attribute_udt_schema NAME, attribute_udt_name NAME, scope_catalog NAME,
        scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
        is_derived_reference_attribute TEXT,
    ]
    character_sets 13250 'v' information::character_sets [
        character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        character_repertoire NAME, form_of_use NAME, default_collate_catalog NAME,
        default_collate_schema NAME, default_collate_name NAME,
    ]
    check_constraint_routine_usage 13255 'v' none [
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        specific_catalog NAME, specific_schema NAME, specific_name NAME,
    ]
    collation_character_set_applicability 13270 'v' none [
        collation_catalog NAME, collation_schema NAME, collation_name NAME,
        character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
    ]
    collations 13265 'v' information::collations [
        collation_catalog NAME, collation_schema NAME, collation_name NAME, pad_attribute TEXT,
    ]
    column_column_usage 13275 'v' none [
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        dependent_column NAME,
    ]
    column_domain_usage 13280 'v' domains::column_usage [
        domain_catalog NAME, domain_schema NAME, domain_name NAME, table_catalog NAME,
        table_schema NAME, table_name NAME, column_name NAME,
    ]
    column_options 13503 'v' none [
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        option_name NAME, option_value TEXT,
    ]
    column_udt_usage 13290 'v' information::column_types [
        udt_catalog NAME, udt_schema NAME, udt_name NAME, table_catalog NAME, table_schema NAME,
        table_name NAME, column_name NAME,
    ]
    data_type_privileges 13488 'v' none [
        object_catalog NAME, object_schema NAME, object_name NAME, object_type TEXT,
        dtd_identifier NAME,
    ]
    domain_constraints 13310 'v' domains::domain_constraints [
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        domain_catalog NAME, domain_schema NAME, domain_name NAME, is_deferrable TEXT,
        initially_deferred TEXT,
    ]
    domain_udt_usage 13315 'v' domains::udt_usage [
        udt_catalog NAME, udt_schema NAME, udt_name NAME, domain_catalog NAME,
        domain_schema NAME, domain_name NAME,
    ]
    element_types 13493 'v' information::elements [
        object_catalog NAME, object_schema NAME, object_name NAME, object_type TEXT,
        collection_type_identifier NAME, data_type TEXT, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME,
        character_set_name NAME, collation_catalog NAME, collation_schema NAME,
        collation_name NAME, numeric_precision INT4, numeric_precision_radix INT4,
        numeric_scale INT4, datetime_precision INT4, interval_type TEXT,
        interval_precision INT4, domain_default TEXT, udt_catalog NAME, udt_schema NAME,
        udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME,
        maximum_cardinality INT4, dtd_identifier NAME,
    ]
    foreign_data_wrapper_options 13511 'v' none [
        foreign_data_wrapper_catalog NAME, foreign_data_wrapper_name NAME, option_name NAME,
        option_value TEXT,
    ]
    foreign_data_wrappers 13515 'v' none [
        foreign_data_wrapper_catalog NAME, foreign_data_wrapper_name NAME,
        authorization_identifier NAME, library_name TEXT, foreign_data_wrapper_language TEXT,
    ]
    foreign_server_options 13524 'v' none [
        foreign_server_catalog NAME, foreign_server_name NAME, option_name NAME,
        option_value TEXT,
    ]
    foreign_servers 13528 'v' none [
        foreign_server_catalog NAME, foreign_server_name NAME,
        foreign_data_wrapper_catalog NAME, foreign_data_wrapper_name NAME,
        foreign_server_type TEXT, foreign_server_version TEXT, authorization_identifier NAME,
    ]
    foreign_table_options 13537 'v' none [
        foreign_table_catalog NAME, foreign_table_schema NAME, foreign_table_name NAME,
        option_name NAME, option_value TEXT,
    ]
    foreign_tables 13541 'v' none [
        foreign_table_catalog NAME, foreign_table_schema NAME, foreign_table_name NAME,
        foreign_server_catalog NAME, foreign_server_name NAME,
    ]
    role_column_grants 13344 'v' grants::column_privileges [
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        column_name NAME, privilege_type TEXT, is_grantable TEXT,
    ]
    role_routine_grants 13358 'v' none [
        grantor NAME, grantee NAME, specific_catalog NAME, specific_schema NAME,
        specific_name NAME, routine_catalog NAME, routine_schema NAME, routine_name NAME,
        privilege_type TEXT, is_grantable TEXT,
    ]
    role_table_grants 13421 'v' grants::table_privileges [
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        privilege_type TEXT, is_grantable TEXT, with_hierarchy TEXT,
    ]
    role_udt_grants 13450 'v' none [
        grantor NAME, grantee NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME,
        privilege_type TEXT, is_grantable TEXT,
    ]
    role_usage_grants 13459 'v' grants::usage_privileges [
        grantor NAME, grantee NAME, object_catalog NAME, object_schema NAME, object_name NAME,
        object_type TEXT, privilege_type TEXT, is_grantable TEXT,
    ]
    routine_column_usage 13348 'v' none [
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME,
        routine_schema NAME, routine_name NAME, table_catalog NAME, table_schema NAME,
        table_name NAME, column_name NAME,
    ]
    routine_routine_usage 13362 'v' none [
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME,
        routine_schema NAME, routine_name NAME,
    ]
    routine_sequence_usage 13367 'v' none [
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME,
        routine_schema NAME, routine_name NAME, sequence_catalog NAME, sequence_schema NAME,
        sequence_name NAME,
    ]
    routine_table_usage 13372 'v' none [
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME,
        routine_schema NAME, routine_name NAME, table_catalog NAME, table_schema NAME,
        table_name NAME,
    ]
    sql_features 13391 'r' none [
        feature_id TEXT, feature_name TEXT, sub_feature_id TEXT, sub_feature_name TEXT,
        is_supported TEXT, is_verified_by TEXT, comments TEXT,
    ]
    sql_implementation_info 13396 'r' none [
        implementation_info_id TEXT, implementation_info_name TEXT, integer_value INT4,
        character_value TEXT, comments TEXT,
    ]
    sql_parts 13401 'r' none [
        feature_id TEXT, feature_name TEXT, is_supported TEXT, is_verified_by TEXT,
        comments TEXT,
    ]
    sql_sizing 13406 'r' none [
        sizing_id INT4, sizing_name TEXT, supported_value INT4, comments TEXT,
    ]
    transforms 13430 'v' none [
        udt_catalog NAME, udt_schema NAME, udt_name NAME, specific_catalog NAME,
        specific_schema NAME, specific_name NAME, group_name NAME, transform_type TEXT,
    ]
    triggered_update_columns 13435 'v' none [
        trigger_catalog NAME, trigger_schema NAME, trigger_name NAME, event_object_catalog NAME,
        event_object_schema NAME, event_object_table NAME, event_object_column NAME,
    ]
    udt_privileges 13445 'v' none [
        grantor NAME, grantee NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME,
        privilege_type TEXT, is_grantable TEXT,
    ]
    usage_privileges 13454 'v' grants::usage_privileges [
        grantor NAME, grantee NAME, object_catalog NAME, object_schema NAME, object_name NAME,
        object_type TEXT, privilege_type TEXT, is_grantable TEXT,
    ]
    user_defined_types 13463 'v' information::composites [
        user_defined_type_catalog NAME, user_defined_type_schema NAME,
        user_defined_type_name NAME, user_defined_type_category TEXT, is_instantiable TEXT,
        is_final TEXT, ordering_form TEXT, ordering_category TEXT,
        ordering_routine_catalog NAME, ordering_routine_schema NAME, ordering_routine_name NAME,
        reference_type TEXT, data_type TEXT, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME,
        character_set_name NAME, collation_catalog NAME, collation_schema NAME,
        collation_name NAME, numeric_precision INT4, numeric_precision_radix INT4,
        numeric_scale INT4, datetime_precision INT4, interval_type TEXT,
        interval_precision INT4, source_dtd_identifier NAME, ref_dtd_identifier NAME,
    ]
    user_mapping_options 13550 'v' none [
        authorization_identifier NAME, foreign_server_catalog NAME, foreign_server_name NAME,
        option_name NAME, option_value TEXT,
    ]
    user_mappings 13555 'v' none [
        authorization_identifier NAME, foreign_server_catalog NAME, foreign_server_name NAME,
    ]
    view_column_usage 13468 'v' none [
        view_catalog NAME, view_schema NAME, view_name NAME, table_catalog NAME,
        table_schema NAME, table_name NAME, column_name NAME,
    ]
    view_routine_usage 13473 'v' none [
        table_catalog NAME, table_schema NAME, table_name NAME, specific_catalog NAME,
        specific_schema NAME, specific_name NAME,
    ]
    view_table_usage 13478 'v' none [
        view_catalog NAME, view_schema NAME, view_name NAME, table_catalog NAME,
        table_schema NAME, table_name NAME,
    ]
};
