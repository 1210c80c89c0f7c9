// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! The server of an extension.

use std::{
    convert::Infallible,
    env, fmt,
    future::Future,
    io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use prost::bytes::{Buf, BufMut, Bytes};
use tokio::{
    net::{TcpListener, UnixListener, UnixSocket, lookup_host},
    signal::unix::{SignalKind, signal},
    sync::{Notify, Semaphore},
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Request, Response, Status,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{Service, http},
    server::{Grpc, UnaryService},
    service::Routes,
    transport::{Server, server::TcpIncoming},
};
use tonic_health::ServingStatus;

use crate::{
    extension::{Caller, Extension},
    log,
    tls::{Certificates, Files},
};

/// Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can exceed.
const MESSAGE_LIMIT: usize = 20 << 20;
/// How long calls in flight may take to end.
const DRAIN: Duration = Duration::from_secs(30);
/// The metadata in which a gateway sends the id of a call.
const CALL_ID: &str = "hookgate-call-id";

#[derive(Clone)]
pub(crate) struct Options {
    address: Option<String>,
    insecure: bool,
    concurrency: usize,
    tls: Option<Files>,
    client_ca: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options { address: None, insecure: false, concurrency: 100, tls: None, client_ca: None }
    }
}

/// Why an extension cannot be served. Its text says what to do.
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        ServeError(text.into())
    }

    fn at(address: &str) -> impl Fn(io::Error) -> Self {
        move |error| ServeError(format!("listen on {address}: {error}"))
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServeError {
    /// Writes what Display does, because a program whose main returns the error prints it with Debug.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

impl Extension {
    /// Sets where to serve: HOST:PORT, or unix:///PATH. The default is the environment's EXTENSION_ADDRESS, or else
    /// 127.0.0.1:9090.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.options.address = Some(address.into());
        self
    }

    /// Serves an address that is not on loopback without TLS.
    pub fn insecure(mut self) -> Self {
        self.options.insecure = true;
        self
    }

    /// Sets the files of the certificate and of its key, in PEM. They are read again when they change. A Unix socket has
    /// no TLS.
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.options.tls = Some(Files { certificate: certificate.into(), key: key.into(), client_ca: None });
        self
    }

    /// Sets the file of the authorities of callers, in PEM: with TLS, callers must then show a certificate.
    pub fn client_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.client_ca = Some(file.into());
        self
    }

    /// Sets how many calls may be in flight, 100 by default. One more is answered RESOURCE_EXHAUSTED.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.options.concurrency = calls;
        self
    }

    /// Serves the extension with gRPC's health and reflection until SIGTERM or SIGINT, and then finishes the calls in
    /// flight.
    pub async fn serve(self) -> Result<(), ServeError> {
        let signalled = |error: io::Error| ServeError(format!("wait for signals: {error}"));
        let mut terminated = signal(SignalKind::terminate()).map_err(signalled)?;
        let mut interrupted = signal(SignalKind::interrupt()).map_err(signalled)?;
        let stop = async move {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
            }
        };
        self.serve_until(log::listening, stop).await
    }

    /// Serves until stop is ready, and calls a function with the address once it listens.
    pub(crate) async fn serve_until(
        self,
        listening: impl FnOnce(&str),
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        self.checked()?;
        let Options { address, insecure, concurrency, tls, client_ca } = self.options.clone();
        if tls.is_none() && client_ca.is_some() {
            return Err(ServeError::new("there is a client_ca, but no certificate to serve with: set it with tls"));
        }
        let address = address.or_else(|| env::var("EXTENSION_ADDRESS").ok());
        let address = address.unwrap_or_else(|| "127.0.0.1:9090".into());

        let (mut health, health_service) = tonic_health::server::health_reporter();
        let mut reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name("grpc.health.v1.Health")
            .with_service_name("grpc.reflection.v1.ServerReflection")
            .with_service_name("hookgate.hooks.v1alpha1.DiscoveryService");
        for set in &self.encoded {
            reflection = reflection.register_encoded_file_descriptor_set(set);
        }
        for service in self.services() {
            reflection = reflection.with_service_name(service);
        }
        let reflection = reflection.build_v1().map_err(|error| ServeError(format!("reflection: {error}")))?;
        let mut routes = Routes::new(health_service).add_service(reflection);
        let calls = Arc::new(Semaphore::new(concurrency));
        let hooks = Hooks { extension: Arc::new(self), calls };
        let router = std::mem::take(routes.axum_router_mut()).fallback_service(hooks);
        let server = Server::builder().add_routes(Routes::from(router));

        let stopping = Arc::new(Notify::new());
        let stopped = stopping.clone();
        let drain = async move { stopped.notified().await };
        let serving: Pin<Box<dyn Future<Output = Result<(), tonic::transport::Error>>>>;
        let (mut socket, mut shown) = (None, address.clone());
        if let Some(path) = address.strip_prefix("unix://") {
            let listener = listen_unix(path).map_err(ServeError::at(&address))?;
            socket = Some(PathBuf::from(path));
            serving = Box::pin(server.serve_with_incoming_shutdown(UnixListenerStream::new(listener), drain));
        } else {
            let resolved = lookup_host(&address).await.map_err(ServeError::at(&address))?.collect::<Vec<_>>();
            if tls.is_none() && !insecure && !resolved.iter().all(|a: &SocketAddr| a.ip().is_loopback()) {
                return Err(ServeError(format!(
                    "listen on {address}: everyone could call, without TLS: set Extension::tls, \
                     or Extension::insecure if something else protects the address"
                )));
            }
            let listener = TcpListener::bind(&resolved[..]).await.map_err(ServeError::at(&address))?;
            if let (Some(host), Ok(at)) = (address.strip_suffix(":0"), listener.local_addr()) {
                shown = format!("{host}:{}", at.port());
            }
            match tls {
                Some(files) => {
                    let certificates = Certificates::read(Files { client_ca, ..files });
                    let incoming = certificates.map_err(|e| ServeError(format!("TLS: {e}")))?.accept(listener);
                    serving = Box::pin(server.serve_with_incoming_shutdown(incoming, drain));
                }
                None => {
                    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                    serving = Box::pin(server.serve_with_incoming_shutdown(incoming, drain));
                }
            }
        }
        listening(&shown);
        let stop = async {
            stop.await;
            if let Some(path) = socket {
                let _ = std::fs::remove_file(path); // before another server takes the path
            }
        };
        run(&address, serving, stop, &mut health, &stopping).await
    }
}

/// Serves until stop is ready, and then until the calls in flight have ended.
async fn run(
    address: &str,
    mut serving: Pin<Box<dyn Future<Output = Result<(), tonic::transport::Error>> + '_>>,
    stop: impl Future<Output = ()>,
    health: &mut tonic_health::server::HealthReporter,
    stopping: &Notify,
) -> Result<(), ServeError> {
    let failed = |error: tonic::transport::Error| ServeError(format!("serve {address}: {error}"));
    tokio::select! {
        ended = &mut serving => return ended.map_err(failed),
        () = stop => {}
    }
    health.set_service_status("", ServingStatus::NotServing).await;
    health.clear_service_status("").await; // ends the calls of those that watch it
    stopping.notify_one();
    match tokio::time::timeout(DRAIN, serving).await {
        Ok(ended) => ended.map_err(failed),
        Err(_) => {
            log::warning("calls were still in flight after 30 s");
            Ok(())
        }
    }
}

/// Listens on a Unix socket that only its owner may connect to, in place of one that a killed server has left.
fn listen_unix(path: &str) -> io::Result<UnixListener> {
    if let Ok(file) = std::fs::symlink_metadata(path) {
        if !file.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is not a socket"));
        }
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(error) => return Err(error),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there")),
        }
    }
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(1024)
}

/// The service of all methods of all hooks. Messages pass it encoded: each handler decodes its own.
#[derive(Clone)]
struct Hooks {
    extension: Arc<Extension>,
    calls: Arc<Semaphore>,
}

impl<B> Service<http::Request<B>> for Hooks
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<tonic::codegen::StdError> + Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            let refused = Status::resource_exhausted("too many calls are in flight; try again later");
            let id = request.headers().get(CALL_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
            let call = log::Call::new(hook_of(request.uri().path()), id, None);
            call.end(Some(log::Problem::status("Overloaded", &refused)));
            return Box::pin(async move { Ok(refused.into_http()) });
        };
        let call = Call { extension: self.extension.clone(), path: request.uri().path().to_owned() };
        Box::pin(async move {
            let mut grpc =
                Grpc::new(Encoded).max_decoding_message_size(MESSAGE_LIMIT).max_encoding_message_size(MESSAGE_LIMIT);
            let response = grpc.unary(call, request).await;
            drop(permit);
            Ok(response)
        })
    }
}

struct Call {
    extension: Arc<Extension>,
    path: String,
}

impl UnaryService<Bytes> for Call {
    type Response = Vec<u8>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Vec<u8>>, Status>> + Send>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (extension, path) = (self.extension.clone(), self.path.clone());
        Box::pin(async move {
            let text = |name: &'static str| {
                request.metadata().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
            };
            let caller = Caller { id: text(CALL_ID).to_owned(), timeout: timeout_of(text("grpc-timeout")) };
            #[cfg(feature = "opentelemetry")]
            let trace = crate::trace::parent(request.metadata());
            let answering = async move { extension.answer(&path, request.into_inner(), &caller).await };
            #[cfg(feature = "opentelemetry")]
            let answering = opentelemetry::context::FutureExt::with_context(answering, trace);
            answering.await.map(Response::new)
        })
    }
}

/// Returns the name of the hook in a path.
pub(crate) fn hook_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.get(..100).unwrap_or(name)
}

/// Returns how long a caller waits, as gRPC writes it: 10S, 500m.
fn timeout_of(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        "M" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// Passes messages on as they are encoded.
struct Encoded;

impl Codec for Encoded {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Encoded;
    type Decoder = Encoded;

    fn encoder(&mut self) -> Encoded {
        Encoded
    }

    fn decoder(&mut self) -> Encoded {
        Encoded
    }
}

impl Encoder for Encoded {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
