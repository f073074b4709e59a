//! Servers that run from their published jars: Cassandra and HBase, their settings and their
//! command lines.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Packages of Java's own modules that these servers reach into.
const OPEN: [&str; 16] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
];
/// Packages that they use beside those.
const EXPORTED: [&str; 5] = [
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.security.jgss/sun.security.krb5",
    "jdk.management/com.sun.management.internal",
];

/// A file beside the data, and what stands in it.
type Settings = (&'static str, String);

fn modules(command: &mut Command) {
    for package in OPEN.iter().chain(&EXPORTED) {
        command
            .arg("--add-opens")
            .arg(format!("{package}=ALL-UNNAMED"));
        command
            .arg("--add-exports")
            .arg(format!("{package}=ALL-UNNAMED"));
    }
}

/// The folder of settings, and behind it all jars.
fn class_path(folder: &Path, jars: &Path) -> String {
    format!("{}:{}/*", folder.display(), jars.display())
}

/// What Cassandra needs in its folder. `peers` is where nodes would speak with each other.
pub(crate) fn cassandra_files(
    data: &Path,
    address: SocketAddr,
    peers: SocketAddr,
) -> [Settings; 2] {
    let (host, data) = (address.ip(), data.display());
    let yaml = format!(
        "cluster_name: bench\n\
         num_tokens: 1\n\
         partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
         endpoint_snitch: SimpleSnitch\n\
         seed_provider:\n\
         \x20 - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n\
         \x20   parameters:\n\
         \x20     - seeds: \"{host}:{}\"\n\
         listen_address: {host}\n\
         storage_port: {}\n\
         rpc_address: {host}\n\
         native_transport_port: {}\n\
         commitlog_sync: batch\n\
         auto_snapshot: false\n\
         data_file_directories: [\"{data}/data\"]\n\
         commitlog_directory: \"{data}/commitlog\"\n\
         saved_caches_directory: \"{data}/caches\"\n\
         hints_directory: \"{data}/hints\"\n\
         cdc_raw_directory: \"{data}/cdc\"\n",
        peers.port(),
        peers.port(),
        address.port(),
    );
    let log = "<configuration>\n\
         <appender name=\"OUT\" class=\"ch.qos.logback.core.ConsoleAppender\">\n\
         <encoder><pattern>%level %date %msg%n</pattern></encoder>\n\
         </appender>\n\
         <root level=\"INFO\"><appender-ref ref=\"OUT\"/></root>\n\
         </configuration>\n";
    [("cassandra.yaml", yaml), ("logback.xml", String::from(log))]
}

/// The command line of Cassandra, behind the name of the program.
pub(crate) fn cassandra(command: &mut Command, folder: &Path, jars: &Path) {
    modules(command);
    command.args(["-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-ea:none"]);
    let yaml = folder.join("cassandra.yaml");
    command.arg(format!("-Dcassandra.config=file://{}", yaml.display()));
    command.arg(format!(
        "-Dcassandra.storagedir={}",
        folder.join("data").display()
    ));
    for setting in [
        "cassandra-foreground=yes",
        // There is one node: nobody has to be waited for.
        "cassandra.ring_delay_ms=100",
        "cassandra.skip_wait_for_gossip_to_settle=0",
        "io.netty.tryReflectionSetAccessible=true",
        "jdk.attach.allowAttachSelf=true",
    ] {
        command.arg(format!("-D{setting}"));
    }
    command.arg("-cp").arg(class_path(folder, jars));
    command.arg("org.apache.cassandra.service.CassandraDaemon");
}

/// What HBase needs in its folder. `keeper` is where its ZooKeeper listens.
pub(crate) fn hbase_files(data: &Path, keeper: SocketAddr) -> [Settings; 2] {
    let mut site = String::from("<configuration>\n");
    let (data, keeper) = (data.display(), keeper.port());
    for (name, value) in [
        ("hbase.rootdir", format!("file://{data}/root")),
        ("hbase.tmp.dir", format!("{data}/tmp")),
        (
            "hbase.zookeeper.property.dataDir",
            format!("{data}/zookeeper"),
        ),
        ("hbase.zookeeper.property.clientPort", keeper.to_string()),
        ("hbase.zookeeper.quorum", String::from("127.0.0.1")),
        (
            "hbase.localcluster.assign.random.ports",
            String::from("true"),
        ),
        ("hbase.master.info.port", String::from("-1")),
        ("hbase.regionserver.info.port", String::from("-1")),
        ("hbase.thrift.info.port", String::from("-1")),
        // With checksums beside it a local file is not written before it is closed.
        (
            "fs.file.impl",
            String::from("org.apache.hadoop.fs.RawLocalFileSystem"),
        ),
        ("hbase.wal.provider", String::from("filesystem")),
        ("hbase.wal.hsync", String::from("true")),
        (
            "hbase.unsafe.stream.capability.enforce",
            String::from("false"),
        ),
        ("hbase.regionserver.handler.count", String::from("30")),
    ] {
        site.push_str(&format!(
            "<property><name>{name}</name><value>{value}</value></property>\n"
        ));
    }
    site.push_str("</configuration>\n");
    let log = "log4j.rootLogger=INFO, OUT\n\
         log4j.appender.OUT=org.apache.log4j.ConsoleAppender\n\
         log4j.appender.OUT.layout=org.apache.log4j.PatternLayout\n\
         log4j.appender.OUT.layout.ConversionPattern=%p %d %c{1}: %m%n\n";
    [
        ("hbase-site.xml", site),
        ("log4j.properties", String::from(log)),
    ]
}

/// The command line of HBase and of its gateway, behind the name of a shell.
pub(crate) fn hbase(
    command: &mut Command,
    java: &Path,
    (folder, jars): (&Path, &Path),
    port: &str,
) {
    // Both have the same class path and the same modules, which stand behind the fourth argument.
    let script = "java=$1 classes=$2 port=$3; shift 3\n\
        \"$java\" -Xmx768m \"$@\" -cp \"$classes\" org.apache.hadoop.hbase.master.HMaster start &\n\
        \"$java\" -Xmx384m \"$@\" -cp \"$classes\" \
        org.apache.hadoop.hbase.thrift2.ThriftServer start -b 127.0.0.1 -p \"$port\" -f &\n\
        wait";
    command.args(["-c", script, "sh"]).arg(java);
    command.arg(class_path(folder, jars)).arg(port);
    modules(command);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_their_places() {
        let (address, peers) = (
            "127.0.0.1:7".parse().unwrap(),
            "127.0.0.1:8".parse().unwrap(),
        );
        let [(name, yaml), _] = cassandra_files(Path::new("/d"), address, peers);
        assert_eq!(name, "cassandra.yaml");
        for line in [
            "\nnative_transport_port: 7\n",
            "\nstorage_port: 8\n",
            "\n      - seeds: \"127.0.0.1:8\"\n",
            "\ncommitlog_directory: \"/d/commitlog\"\n",
        ] {
            assert!(yaml.contains(line), "{line} in\n{yaml}");
        }
        let [(_, site), _] = hbase_files(Path::new("/d"), peers);
        assert!(site.contains("<value>file:///d/root</value>"), "{site}");
    }
}
