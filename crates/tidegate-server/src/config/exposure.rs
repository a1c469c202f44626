use super::errors::{ConfigError, ErrorList};
use super::policies::{Anonymous, TlsMode};
use super::schema::{Setting, State};
use super::sections::{PortSettings, TlsSettings};
use super::table::Table;
use super::value::CertificateName;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Checks of what others can reach: beyond loopback a port needs TLS, or the decision for plain text, and tokens.
pub fn run(table: &Table, errors: &mut ErrorList) {
    let [data, admin, frames, lines, workers] = ports(table);
    let (clients, operators) = (&table.client.entries, &table.operator.entries);
    clients_port(table, errors);
    let certificates = clients.iter().map(|client| &client.certificate);
    named_by_certificate(certificates, &[&data, &frames, &lines], &table.tls, errors);
    let certificates = operators.iter().map(|operator| &operator.certificate);
    named_by_certificate(certificates, &[&admin, &frames, &lines], &table.tls, errors);
    let certificates = table.worker.entries.iter().map(|worker| &worker.certificate);
    named_by_certificate(certificates, &[&workers], &table.tls, errors);
    let has_tokens = clients.iter().any(|client| client.identity().has_token());
    let has_certificates = clients.iter().any(|client| client.certificate.state.is_given);
    for port in [&frames, &lines] {
        let allowed = "a loopback address while no client has a token: add a [[client]] with a \
                       token, or a certificate and tls.client_ca; or listen on 127.0.0.1";
        let is_closed = has_tokens || has_certificates && port.asks_for_certificates(&table.tls);
        closed_without(is_closed, port, allowed, errors);
    }
    let allowed = "a loopback address while no operator has a token: add an [[operator]] with a \
                   token, or listen on 127.0.0.1";
    closed_without(!operators.is_empty(), &admin, allowed, errors);
    let allowed = "a loopback address while no worker has a token: add a [[worker]] with a token, join \
                   workers to a cluster, or listen on 127.0.0.1";
    let are_known = !table.worker.entries.is_empty() || table.workers.node_certificates.get();
    closed_without(are_known, &workers, allowed, errors);
    let shared = &table.tls;
    pair(&shared.cert, &shared.key, errors);
    pair(&table.tasks.tls_cert, &table.tasks.tls_key, errors);
    authorities(&shared.client_ca, shared.cert.state.is_given, errors);
    for port in [&data, &admin, &frames, &lines, &workers] {
        pair(port.cert, port.key, errors);
        let has_cert = port.cert.state.is_given || shared.cert.state.is_given;
        authorities(port.client_ca, has_cert, errors);
        switched_off(port, errors);
        plain_text(table, port, errors);
    }
}

/// Every port of a node.
fn ports(table: &Table) -> [PortSettings<'_>; 5] {
    let (listen, ingest) = (&table.listen, &table.ingest);
    [
        listen.data_port(),
        listen.admin_port(),
        ingest.frames_port(),
        ingest.lines_port(),
        table.workers.port(),
    ]
}

fn is_open(address: &Setting<SocketAddr>) -> bool {
    address.state.is_sound && !address.get().ip().to_canonical().is_loopback()
}

fn closed_without(
    has_tokens: bool,
    port: &PortSettings<'_>,
    allowed: &str,
    errors: &mut ErrorList,
) {
    if is_open(port.address) && !has_tokens {
        errors.push(port.address.error(port.address.get().to_string(), allowed));
    }
}

/// Every client that reaches the port can use the capacity behind it. The defaults admit every client and trust
/// its headers, which is right on loopback and nowhere else.
fn clients_port(table: &Table, errors: &mut ErrorList) {
    let (listen, anonymous) = (&table.listen.address, &table.claims.anonymous);
    let (address, forwarded) = (listen.get(), &table.proxy.forwarded);
    let has_clients = !table.client.entries.is_empty();
    let is_open = is_open(listen);
    let decision = |choices: &str| {
        format!("a decision of yours while {} is {address}: {choices}", listen.state.key)
    };
    if is_open && !has_clients {
        let allowed = "a loopback address while no client has a token: add a [[client]] with a \
                       token, or listen on 127.0.0.1";
        errors.push(listen.error(address.to_string(), allowed));
    }
    if is_open && has_clients && anonymous.state.is_missing() {
        let choices = "\"refuse\", or the highest priority that clients without a token may claim";
        errors.push(anonymous.error("nothing", decision(choices)));
    }
    if is_open && forwarded.state.is_missing() {
        let choices = "\"replace\" when clients reach it directly, \"append\" behind another \
                       proxy, or \"off\"";
        errors.push(forwarded.error("nothing", decision(choices)));
    }
    if anonymous.state.is_sound && anonymous.get() == Anonymous::Refuse && !has_clients {
        let allowed =
            "\"high\", \"normal\" or \"low\" while there is no [[client]]: nobody could get in";
        errors.push(anonymous.error("\"refuse\"", allowed));
    }
}

/// A certificate needs its key, and a key its certificate.
fn pair(cert: &Setting<Option<PathBuf>>, key: &Setting<Option<PathBuf>>, errors: &mut ErrorList) {
    let (cert, key) = (&cert.state, &key.state);
    if cert.is_sound && key.is_sound && cert.is_given != key.is_given {
        let (present, missing) = if cert.is_given { (cert, key) } else { (key, cert) };
        let allowed = format!("the path of a file beside {}, or neither of them", present.key);
        errors.push(ConfigError::new(&missing.key, &present.origin, "nothing", allowed));
    }
}

/// Client certificates are asked for within TLS alone: authorities without it would protect nothing.
fn authorities(client_ca: &Setting<Option<PathBuf>>, has_cert: bool, errors: &mut ErrorList) {
    if client_ca.state.is_given && !has_cert {
        let allowed = "authorities beside a certificate of the port: set tls.cert and tls.key";
        errors.push(client_ca.error("authorities of a port without TLS", allowed));
    }
}

/// A client certificate is shown at a port that asks for one alone. One error, however many entries have one; it
/// names the first port.
fn named_by_certificate<'a>(
    mut certificates: impl Iterator<Item = &'a Setting<Option<CertificateName>>>,
    ports: &[&PortSettings<'_>],
    shared: &TlsSettings,
    errors: &mut ErrorList,
) {
    let Some(port) = ports.first() else { return };
    if !ports.iter().any(|port| port.asks_for_certificates(shared))
        && let Some(first) = certificates.find(|certificate| certificate.state.is_given)
    {
        let (own, address) = (&port.client_ca.state.key, &port.address.state.key);
        let allowed = format!(
            "a certificate beside {own} or tls.client_ca: the port of {address} asks for none"
        );
        errors.push(first.error("a certificate that is never shown", allowed));
    }
}

/// A certificate that is never shown is a contradiction.
fn switched_off(port: &PortSettings<'_>, errors: &mut ErrorList) {
    let given = |state: &&State| state.is_given;
    let files = [&port.cert.state, &port.key.state, &port.client_ca.state];
    let Some(file) = files.into_iter().find(given) else { return };
    if port.mode.state.is_sound && port.mode.get() == TlsMode::Off {
        let allowed = format!("\"auto\" beside {}, or \"off\" without it", file.key);
        errors.push(port.mode.error("\"off\"", allowed));
    }
}

/// Plain text shows tokens and data to the network, so it has to be asked for.
fn plain_text(table: &Table, port: &PortSettings<'_>, errors: &mut ErrorList) {
    let shared = &table.tls;
    let files = [port.cert, port.key, &shared.cert, &shared.key];
    let is_sound = port.mode.state.is_sound && files.iter().all(|file| file.state.is_sound);
    let has_files = files.iter().any(|file| file.state.is_given);
    let is_decided = port.mode.get() == TlsMode::Off;
    if is_sound && is_open(port.address) && !is_decided && !has_files {
        let (address, mode) = (&port.address.state.key, &port.mode.state.key);
        let allowed = format!(
            "TLS while {address} is {}: set tls.cert and tls.key, or {} and {} for this port \
             alone; or {mode} = \"off\" for plain text, which shows tokens to the network",
            port.address.get(),
            port.cert.state.key,
            port.key.state.key,
        );
        errors.push(ConfigError::new(mode, &port.address.state.origin, "no certificate", allowed));
    }
}
