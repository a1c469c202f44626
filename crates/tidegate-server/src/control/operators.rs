use crate::proxy::GatewayBody;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Enough for every scraper and operator; one more waits for one of them to leave.
const CONNECTIONS_MAX: usize = 256;

/// Answers whoever connects to an admin port, for ever.
pub async fn serve_operators<A, F>(listener: TcpListener, header_timeout: Duration, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<GatewayBody>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed, so this waits for a place and never fails.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((tcp, _)) => {
                let answer = answer.clone();
                tokio::spawn(async move {
                    serve_operator(tcp, header_timeout, answer).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection on the admin port");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_operator<A, F>(tcp: TcpStream, header_timeout: Duration, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<GatewayBody>> + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_timeout);
    let service = service_fn(move |request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(tcp), service).await {
        tracing::debug!(%error, "an operator's connection ended");
    }
}
