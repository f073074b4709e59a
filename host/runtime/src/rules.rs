//! Rules of access: which proof is asked of whom. The file that `access.rules` names.
//!
//! ```text
//! # database   role    address       proof
//! shop,stock   alice   10.0.0.0/8    cert
//! all          admin   all           reject
//! all          all     127.0.0.1/32  scram
//! ```
//!
//! The first line that fits decides; a client that none fits is refused.

use crate::RuntimeError;
use std::net::IpAddr;
use std::path::Path;

/// What a client has to prove, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// A password.
    Scram,
    /// A certificate with the role's name.
    Cert,
    /// It is not let in.
    Reject,
}

const METHODS: [(&str, Method); 3] = [
    ("scram", Method::Scram),
    ("cert", Method::Cert),
    ("reject", Method::Reject),
];

/// Words of PostgreSQL's file in place of names, besides `+role`, `@file` and `/pattern`. As names
/// they would make rules that fit nobody, and the next rule would decide.
const FOREIGN: [&str; 4] = ["sameuser", "samerole", "samegroup", "replication"];

/// Names that a rule is for; `None`: all.
type Names = Option<Vec<String>>;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    databases: Names,
    roles: Names,
    /// Address and number of its bits that count; `None`: all.
    network: Option<(IpAddr, u32)>,
    method: Method,
}

/// The rules of a file.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Rules(Vec<Rule>);

/// A word of a line.
struct Word {
    text: String,
    /// It stands in quotes: it is a name, whatever it says.
    quoted: bool,
}

impl Rules {
    /// Reads a file of lines `database role address method`. What follows `#` is for its readers.
    ///
    /// # Errors
    /// The file cannot be read, or a line has another form; the error names it.
    pub(crate) fn read(path: &Path) -> Result<Rules, RuntimeError> {
        let text = std::fs::read_to_string(path).map_err(RuntimeError::file("read", path))?;
        Rules::parse(&text).map_err(|message| RuntimeError::Cluster {
            path: path.to_path_buf(),
            message,
        })
    }

    fn parse(text: &str) -> Result<Rules, String> {
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let rule = rule_of(line).map_err(|what| format!("line {}: {what}", index + 1))?;
            rules.extend(rule);
        }
        Ok(Rules(rules))
    }

    /// Whether some clients have to show a certificate.
    pub(crate) fn ask_certificates(&self) -> bool {
        self.0.iter().any(|rule| rule.method == Method::Cert)
    }

    /// What is asked of a client; `None`: no rule fits.
    pub(crate) fn method(
        &self,
        database: &str,
        role: &str,
        from: Option<IpAddr>,
    ) -> Option<Method> {
        let fits = |names: &Names, name: &str| {
            let has = |names: &Vec<String>| names.iter().any(|known| known == name);
            names.as_ref().is_none_or(has)
        };
        let found = self.0.iter().find(|rule| {
            fits(&rule.databases, database)
                && fits(&rule.roles, role)
                && (rule.network).is_none_or(|net| from.is_some_and(|from| contains(net, from)))
        });
        found.map(|rule| rule.method)
    }
}

fn rule_of(line: &str) -> Result<Option<Rule>, String> {
    let fields = fields_of(line)?;
    let [databases, roles, address, method] = match fields.len() {
        0 => return Ok(None),
        _ => <[Vec<Word>; 4]>::try_from(fields)
            .map_err(|_| "not of the form `database role address method`".to_owned())?,
    };
    let one = |words: &[Word]| match words {
        [word] => Ok(word.text.clone()),
        _ => Err("an address and a method stand alone".to_owned()),
    };
    let method = one(&method)?;
    let known = METHODS.iter().find(|(name, _)| *name == method);
    let known = known.ok_or_else(|| format!("{method:?} is not scram, cert or reject"))?;
    Ok(Some(Rule {
        databases: names_of(databases)?,
        roles: names_of(roles)?,
        network: network_of(&one(&address)?)?,
        method: known.1,
    }))
}

fn names_of(words: Vec<Word>) -> Result<Names, String> {
    for word in words.iter().filter(|word| !word.quoted) {
        let text = &*word.text;
        if text.starts_with(['+', '@', '/']) || FOREIGN.contains(&text) {
            return Err(format!(
                "{text} has a meaning in pg_hba.conf that rules do not have; if it is a name, put \
                 it in quotes"
            ));
        }
    }
    let all = words.iter().any(|word| !word.quoted && word.text == "all");
    Ok((!all).then(|| words.into_iter().map(|word| word.text).collect()))
}

fn network_of(text: &str) -> Result<Option<(IpAddr, u32)>, String> {
    if text == "all" {
        return Ok(None);
    }
    let wrong = || format!("{text:?} is not all, an address, or an address/bits");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    if address.to_canonical() != address {
        let canonical = address.to_canonical();
        return Err(format!(
            "{text:?}: write IPv4 addresses as such, {canonical}"
        ));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => most,
        Some(bits) => bits
            .parse()
            .ok()
            .filter(|bits| *bits <= most)
            .ok_or_else(wrong)?,
    };
    Ok(Some((address, bits)))
}

fn contains((network, bits): (IpAddr, u32), address: IpAddr) -> bool {
    // The first so many bits are equal if nothing is left of the difference.
    match (network, address.to_canonical()) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let difference = network.to_bits() ^ address.to_bits();
            difference.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let difference = network.to_bits() ^ address.to_bits();
            difference.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The fields of a line; each is a list of words between commas.
fn fields_of(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut fields = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let mut words = Vec::new();
        loop {
            let (word, behind) = word_of(rest)?;
            words.push(word);
            rest = behind;
            match rest.strip_prefix(',') {
                Some(behind) => rest = behind.trim_start(),
                None => break,
            }
        }
        fields.push(words);
        rest = rest.trim_start();
    }
    Ok(fields)
}

fn word_of(text: &str) -> Result<(Word, &str), String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (text, behind) = quoted.split_once('"').ok_or("a quote has no end")?;
        let quoted = true;
        let text = text.to_owned();
        return Ok((Word { text, quoted }, behind));
    }
    let ends = |char: char| char.is_whitespace() || char == ',' || char == '#';
    let end = text.find(ends).unwrap_or(text.len());
    if end == 0 {
        return Err("a name is missing beside a comma".to_owned());
    }
    let word = Word {
        text: text[..end].to_owned(),
        quoted: false,
    };
    Ok((word, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = "# who\n\n\
            shop, stock alice 10.0.0.0/8 cert # by certificate\n\
            all mallory all reject\n\
            \"all\" bob ::1 cert\n\
            all \"a b\",all 192.168.1.7 scram\n\
            all all fe80::/10 scram";
        let rules = Rules::parse(rules).expect("they are in order");
        for (database, role, from, method) in [
            ("shop", "alice", "10.255.0.1", Some(Method::Cert)),
            ("stock", "alice", "10.0.0.1", Some(Method::Cert)),
            ("stock", "alice", "::ffff:10.0.0.1", Some(Method::Cert)),
            ("shop", "alice", "11.0.0.1", None),
            ("other", "alice", "10.0.0.1", None),
            ("shop", "mallory", "192.168.1.7", Some(Method::Reject)),
            ("all", "bob", "::1", Some(Method::Cert)),
            ("shop", "bob", "::1", None),
            ("x", "anybody", "192.168.1.7", Some(Method::Scram)),
            ("x", "anybody", "192.168.1.8", None),
            ("x", "anybody", "febf::1", Some(Method::Scram)),
            ("x", "anybody", "fec0::1", None),
        ] {
            let from = from.parse().expect("an address");
            let found = rules.method(database, role, Some(from));
            assert_eq!(found, method, "{database} {role} {from}");
        }
        assert_eq!(rules.method("shop", "alice", None), None);
        let all = Rules::parse("all all 0.0.0.0/0 scram").expect("it is in order");
        let from = Some("1.2.3.4".parse().expect("an address"));
        assert_eq!(all.method("x", "y", from), Some(Method::Scram));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, part) in [
            ("all all all", "line 1: not of the form"),
            ("\nall all all scram x", "line 2: not of the form"),
            ("all all all md5", "\"md5\" is not scram, cert or reject"),
            ("all all 10.0.0.0/33 scram", "\"10.0.0.0/33\" is not all"),
            ("all all host scram", "\"host\" is not all"),
            ("all \"x all scram", "a quote has no end"),
            ("all ,x all scram", "beside a comma"),
            ("all all ::1,::2 scram", "stand alone"),
            ("all x,+staff all scram", "line 1: +staff has a meaning"),
            ("\nall @admins all cert", "line 2: @admins has a meaning"),
            ("all /^a all reject", "/^a has a meaning"),
            ("@list all all scram", "@list has a meaning"),
            ("sameuser all all scram", "sameuser has a meaning"),
            ("samerole all all scram", "samerole has a meaning"),
            ("x, samegroup all all scram", "samegroup has a meaning"),
            ("replication all all scram", "replication has a meaning"),
            ("all all ::ffff:10.0.0.0/104 scram", "as such, 10.0.0.0"),
            ("all all ::ffff:10.0.0.1 scram", "as such, 10.0.0.1"),
        ] {
            let error = Rules::parse(text).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
        let quoted = "\"sameuser\" \"+staff\",\"@x\",replication2 all scram";
        let rules = Rules::parse(quoted).expect("names in quotes");
        assert_eq!(
            rules.method("sameuser", "+staff", None),
            Some(Method::Scram)
        );
    }
}
