//! The rows of TPC-H: the tables and the distributions of its specification, drawn by our own
//! generator. The same scale always gives the same rows; those of the specification's own program
//! are others, so answers are compared between servers and not with its answer files.

use std::io::{Result, Write};

/// Tables in the order in which they are loaded.
pub(super) const TABLES: [&str; 8] = [
    "region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem",
];

/// First day of orders, in days since 1970-01-01 (1992-01-01).
const FIRST_DAY: u64 = 8035;
/// Days on which orders are made: the last 151 days before 1998-12-31 have none.
const ORDER_DAYS: u64 = 2406;
/// What counts as today: 1995-06-17.
const TODAY: u64 = 9298;

const NATIONS: [(&str, u8); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];
const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const SEGMENTS: [&str; 5] = [
    "AUTOMOBILE",
    "BUILDING",
    "FURNITURE",
    "MACHINERY",
    "HOUSEHOLD",
];
const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const INSTRUCTIONS: [&str; 4] = [
    "DELIVER IN PERSON",
    "COLLECT COD",
    "NONE",
    "TAKE BACK RETURN",
];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
const SIZES: [&str; 6] = ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"];
const FINISHES: [&str; 5] = ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"];
const METALS: [&str; 5] = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"];
const BOXES: [&str; 5] = ["SM", "LG", "MED", "JUMBO", "WRAP"];
const CONTAINERS: [&str; 8] = ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"];
const COLORS: &str = "almond antique aquamarine azure beige bisque black blanched blue blush \
    brown burlywood burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan \
    dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green \
    grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta \
    maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale \
    papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy \
    seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat \
    white yellow";
const WORDS: &str = "packages requests accounts deposits foxes ideas theodolites pinto beans \
    instructions dependencies excuses platelets asymptotes courts dolphins multipliers sauternes \
    warthogs frets dinos attainments somas braids hockey players frays warhorses dugouts notornis \
    epitaphs pearls tithes waters orbits gifts sheaves depths sentiments decoys realms pains \
    sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose \
    sublate solve thrash promise engage hinder print doze run dazzle snooze furious sly careful \
    blithe quick fluffy slow quiet ruthless thin close dogged daring brave stealthy permanent \
    enticing idle busy regular final ironic even bold silent special pending unusual express";

/// Draws numbers: xorshift with a multiplication behind it.
struct Draw(u64);

impl Draw {
    fn new(table: &str) -> Draw {
        let seed = table
            .bytes()
            .fold(0x9E37_79B9_7F4A_7C15, |seed: u64, byte| {
                (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
            });
        Draw(seed | 1)
    }

    /// A number from `low` to `high`, both included.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        low + bits % (high - low + 1)
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.between(0, list.len() as u64 - 1) as usize]
    }

    /// Cents as an amount.
    fn amount(&mut self, low: u64, high: u64) -> String {
        amount(self.between(low, high))
    }

    /// A balance from -999.99 to 9999.99.
    fn balance(&mut self) -> String {
        let cents = self.between(0, 1_099_998) as i64 - 99_999;
        let sign = if cents < 0 { "-" } else { "" };
        format!("{sign}{}", amount(cents.unsigned_abs()))
    }

    fn phone(&mut self, nation: u64) -> String {
        let (a, b, c) = (
            self.between(100, 999),
            self.between(100, 999),
            self.between(1000, 9999),
        );
        format!("{}-{a}-{b}-{c}", nation + 10)
    }

    fn address(&mut self) -> String {
        const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,";
        let length = self.between(10, 40);
        let letters = (0..length).map(|_| char::from(LETTERS[self.between(0, 63) as usize]));
        letters.collect()
    }
}

fn amount(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A day as a date, by the calendar of our time.
fn date(day: u64) -> String {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (of_month, month) = (
        of_year - (153 * month + 2) / 5 + 1,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{of_month:02}")
}

/// Words of which texts are made.
struct Texts {
    words: Vec<&'static str>,
    colors: Vec<&'static str>,
}

impl Texts {
    fn new() -> Texts {
        Texts {
            words: WORDS.split_whitespace().collect(),
            colors: COLORS.split_whitespace().collect(),
        }
    }

    fn comment(&self, draw: &mut Draw, low: u64, high: u64) -> String {
        let length = draw.between(low, high) as usize;
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(draw.one_of(&self.words));
        }
        text.truncate(length);
        text.truncate(text.trim_end().len());
        text
    }

    /// Five different colors.
    fn part_name(&self, draw: &mut Draw) -> String {
        let mut chosen: Vec<&str> = Vec::new();
        while chosen.len() < 5 {
            let color = draw.one_of(&self.colors);
            if !chosen.contains(&color) {
                chosen.push(color);
            }
        }
        chosen.join(" ")
    }
}

/// How many rows of a kind there are at this scale, at least one.
fn count(of_one: f64, scale: f64) -> u64 {
    ((of_one * scale).round() as u64).max(1)
}

/// Writes the rows of a table in the text format of COPY.
pub(super) fn write(table: &str, scale: f64, out: &mut dyn Write) -> Result<()> {
    let (texts, mut draw) = (Texts::new(), Draw::new(table));
    match table {
        "region" => {
            for (key, name) in REGIONS.iter().enumerate() {
                writeln!(out, "{key}\t{name}\t{}", texts.comment(&mut draw, 31, 115))?;
            }
            Ok(())
        }
        "nation" => {
            for (key, (name, region)) in NATIONS.iter().enumerate() {
                let comment = texts.comment(&mut draw, 31, 114);
                writeln!(out, "{key}\t{name}\t{region}\t{comment}")?;
            }
            Ok(())
        }
        "supplier" => suppliers(scale, &texts, &mut draw, out),
        "customer" => customers(scale, &texts, &mut draw, out),
        "part" => parts(scale, &texts, &mut draw, out),
        "partsupp" => part_suppliers(scale, &texts, &mut draw, out),
        // Lines and orders are drawn together, for an order's price is that of its lines.
        _ => orders(table == "lineitem", scale, &texts, out),
    }
}

fn suppliers(scale: f64, texts: &Texts, draw: &mut Draw, out: &mut dyn Write) -> Result<()> {
    for key in 1..=count(10_000.0, scale) {
        let nation = draw.between(0, 24);
        let (address, phone) = (draw.address(), draw.phone(nation));
        let balance = draw.balance();
        let mut comment = texts.comment(draw, 25, 60);
        // Of 10,000 suppliers five have complaints, and five recommendations.
        match key % 2000 {
            33 => comment.push_str(" Customer slow Complaints"),
            77 => comment.push_str(" Customer quick Recommends"),
            _ => {}
        }
        writeln!(
            out,
            "{key}\tSupplier#{key:09}\t{address}\t{nation}\t{phone}\t{balance}\t{comment}"
        )?;
    }
    Ok(())
}

fn customers(scale: f64, texts: &Texts, draw: &mut Draw, out: &mut dyn Write) -> Result<()> {
    for key in 1..=count(150_000.0, scale) {
        let nation = draw.between(0, 24);
        let (address, phone) = (draw.address(), draw.phone(nation));
        let (balance, segment) = (draw.balance(), draw.one_of(&SEGMENTS));
        let comment = texts.comment(draw, 29, 116);
        writeln!(
            out,
            "{key}\tCustomer#{key:09}\t{address}\t{nation}\t{phone}\t{balance}\t{segment}\t\
             {comment}"
        )?;
    }
    Ok(())
}

/// The price of a part, in cents.
fn price(part: u64) -> u64 {
    90_000 + (part / 10) % 20_001 + 100 * (part % 1000)
}

/// The number `which` of the four suppliers of a part.
fn supplier(part: u64, which: u64, scale: f64) -> u64 {
    let suppliers = count(10_000.0, scale);
    (part + which * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1
}

fn parts(scale: f64, texts: &Texts, draw: &mut Draw, out: &mut dyn Write) -> Result<()> {
    for key in 1..=count(200_000.0, scale) {
        let name = texts.part_name(draw);
        let (maker, brand) = (draw.between(1, 5), draw.between(1, 5));
        let kind = [
            draw.one_of(&SIZES),
            draw.one_of(&FINISHES),
            draw.one_of(&METALS),
        ]
        .join(" ");
        let size = draw.between(1, 50);
        let container = [draw.one_of(&BOXES), draw.one_of(&CONTAINERS)].join(" ");
        let price = amount(price(key));
        let comment = texts.comment(draw, 5, 22);
        writeln!(
            out,
            "{key}\t{name}\tManufacturer#{maker}\tBrand#{maker}{brand}\t{kind}\t{size}\t\
             {container}\t{price}\t{comment}"
        )?;
    }
    Ok(())
}

fn part_suppliers(scale: f64, texts: &Texts, draw: &mut Draw, out: &mut dyn Write) -> Result<()> {
    for part in 1..=count(200_000.0, scale) {
        for which in 0..4 {
            let supplier = supplier(part, which, scale);
            let available = draw.between(1, 9999);
            let cost = draw.amount(100, 100_000);
            let comment = texts.comment(draw, 49, 198);
            writeln!(out, "{part}\t{supplier}\t{available}\t{cost}\t{comment}")?;
        }
    }
    Ok(())
}

/// Orders, or their lines.
fn orders(lines: bool, scale: f64, texts: &Texts, out: &mut dyn Write) -> Result<()> {
    let (customers, parts) = (count(150_000.0, scale), count(200_000.0, scale));
    let clerks = count(1000.0, scale);
    let mut draw = Draw::new("orders");
    for number in 0..count(1_500_000.0, scale) {
        // Of each 32 keys 8 are in use.
        let key = number / 8 * 32 + number % 8 + 1;
        // A third of the customers has no orders.
        let mut customer = draw.between(1, customers);
        if customer.is_multiple_of(3) {
            customer = if customer > 1 { customer - 1 } else { 1 };
        }
        let day = FIRST_DAY + draw.between(0, ORDER_DAYS - 1);
        let (mut total, mut shipped) = (0, 0);
        let line_count = draw.between(1, 7);
        for line in 1..=line_count {
            let part = draw.between(1, parts);
            let supplier = supplier(part, draw.between(0, 3), scale);
            let quantity = draw.between(1, 50);
            let extended = quantity * price(part);
            let (discount, tax) = (draw.between(0, 10), draw.between(0, 8));
            let ship = day + draw.between(1, 121);
            let commit = day + draw.between(30, 90);
            let receipt = ship + draw.between(1, 30);
            let returned = match (receipt <= TODAY, draw.between(0, 1)) {
                (false, _) => "N",
                (true, 0) => "R",
                (true, _) => "A",
            };
            shipped += u64::from(ship <= TODAY);
            total += extended * (100 + tax) * (100 - discount) / 10_000;
            let (instruction, mode) = (draw.one_of(&INSTRUCTIONS), draw.one_of(&MODES));
            let comment = texts.comment(&mut draw, 10, 43);
            if lines {
                let status = if ship > TODAY { "O" } else { "F" };
                writeln!(
                    out,
                    "{key}\t{part}\t{supplier}\t{line}\t{quantity}\t{}\t0.{discount:02}\t\
                     0.{tax:02}\t{returned}\t{status}\t{}\t{}\t{}\t\
                     {instruction}\t{mode}\t{comment}",
                    amount(extended),
                    date(ship),
                    date(commit),
                    date(receipt),
                )?;
            }
        }
        let (priority, clerk) = (draw.one_of(&PRIORITIES), draw.between(1, clerks));
        let comment = texts.comment(&mut draw, 19, 78);
        if !lines {
            let status = match shipped {
                0 => "O",
                all if all == line_count => "F",
                _ => "P",
            };
            writeln!(
                out,
                "{key}\t{customer}\t{status}\t{}\t{}\t{priority}\tClerk#{clerk:09}\t0\t{comment}",
                amount(total),
                date(day),
            )?;
        }
    }
    Ok(())
}
