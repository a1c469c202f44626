/// Flags of curl for a port: the bundle of its authority, which the node does not know, a certificate of the
/// caller, and a token from a variable.
pub fn curl_flags(has_tls: bool, asks_certificate: bool, token_variable: Option<&str>) -> String {
    let ca = if has_tls { " --cacert ca.pem" } else { "" };
    let own = if asks_certificate { " --cert me.pem --key me.key" } else { "" };
    let token = token_variable.map(|name| format!(" -H \"authorization: Bearer ${name}\""));
    format!("{ca}{own}{}", token.unwrap_or_default())
}
