//! Ports beyond loopback: each needs tokens, and TLS or the decision for plain text.

mod certificates;
mod tls;
mod tokens;
mod workers;

/// A client, an operator, and the decisions that an open data port needs.
const IDENTITIES: &str = "proxy.forwarded = \"replace\"\nclaims.anonymous = \"low\"\n\
    [[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"\n\
    [[operator]]\nname = \"ops\"\ntoken = \"0123456789abcdeg\"\n";

/// The address of each port, and its setting about TLS.
const PORTS: [(&str, &str); 4] = [
    ("listen.address", "listen.tls"),
    ("listen.admin_address", "listen.admin_tls"),
    ("ingest.frames_address", "ingest.frames_tls"),
    ("ingest.lines_address", "ingest.lines_tls"),
];

/// Every port on every address of the machine.
fn all_open() -> String {
    let open =
        |(port, number): (&(&str, &str), u16)| format!("{} = \"0.0.0.0:{number}\"\n", port.0);
    PORTS.iter().zip(21_000..).map(open).collect()
}
