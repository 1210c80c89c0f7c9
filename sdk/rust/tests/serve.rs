// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! What callers and operators see of a server, which is a process of its own.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use hookgate::{
    Answer, Extension, Result, done, fail,
    hooks::v1alpha1::*,
    infrastructure::v1alpha1::{DiscoverInfrastructureRequest, DiscoverInfrastructureResponse},
};
use prost::{Message, bytes::Bytes};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    signal::unix::{SignalKind, signal},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};
use tonic::{Code, Status, codegen::http};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};

const CREATE: &str = "/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate";
const DELETE: &str = "/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterDelete";

/// The names of environment variables: whether the program has a subscriber of tracing, and the folder of its
/// certificate and of the authority of its callers.
const SUBSCRIBED: &str = "HOOKGATE_TEST_SUBSCRIBED";
const CERTIFICATES: &str = "HOOKGATE_TEST_CERTIFICATES";

/// Serves at EXTENSION_ADDRESS.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the program that the other tests start"]
async fn program() {
    /// Answers when the server is told to stop.
    async fn slow(_: BeforeClusterDeleteRequest) -> Result {
        let mut terminated = signal(SignalKind::terminate())?;
        eprintln!("entered");
        terminated.recv().await;
        done()
    }
    if env::var(SUBSCRIBED).is_ok() {
        tracing::subscriber::set_global_default(Lines).unwrap();
    }
    #[cfg(feature = "opentelemetry")]
    opentelemetry::global::set_text_map_propagator(opentelemetry_sdk::propagation::TraceContextPropagator::new());
    let failure = BeforeClusterCreateResponse {
        status: ResponseStatus::Failure as i32,
        message: "no quota".into(),
        ..Default::default()
    };
    let mut extension = Extension::new();
    if let Ok(folder) = env::var(CERTIFICATES) {
        extension = extension.tls(format!("{folder}/tls.crt"), format!("{folder}/tls.key"));
        if fs::exists(format!("{folder}/ca.crt")).unwrap() {
            extension = extension.client_ca(format!("{folder}/ca.crt"));
        }
    }
    extension
        .handle("done", async |_: BeforeClusterCreateRequest| done())
        .handle("unreadable", async |_: BeforeClusterCreateRequest| -> Result {
            Err(Status::invalid_argument("cluster: there is none"))?
        })
        .handle("unavailable", async |_: BeforeClusterCreateRequest| -> Result {
            Err(Status::unavailable("come back"))?
        })
        .handle("traced", async |_: BeforeClusterCreateRequest| fail::<Answer>(trace()))
        .handle("broken", async |_: BeforeClusterCreateRequest| -> Result { panic!("secret") })
        .handle("refusing", move |_: BeforeClusterCreateRequest| std::future::ready(Ok(failure.clone())))
        .handle("slow", slow)
        .concurrency(1)
        .serve()
        .await
        .unwrap();
}

/// Returns the identifier of the current trace.
fn trace() -> String {
    #[cfg(feature = "opentelemetry")]
    {
        use opentelemetry::{Context, trace::TraceContextExt};
        Context::current().span().span_context().trace_id().to_string()
    }
    #[cfg(not(feature = "opentelemetry"))]
    "none".into()
}

/// A subscriber that writes the events of hookgate as lines of JSON.
struct Lines;

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("hookgate")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        struct Members(Map<String, Value>);
        impl tracing::field::Visit for Members {
            fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
                self.0.insert(field.name().into(), value.into());
            }

            fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                self.0.insert(field.name().into(), value.into());
            }

            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.insert(field.name().replace("message", "msg"), format!("{value:?}").into());
            }
        }
        let level = json!(event.metadata().level().to_string());
        let mut members = Members(Map::from_iter([("level".into(), level), ("time".into(), "now".into())]));
        event.record(&mut members);
        eprintln!("{}", Value::Object(members.0));
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A folder with the socket of a server.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let name = format!("hookgate-serve-{}-{}", std::process::id(), FOLDERS.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("x.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Program {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Program {
    fn start(socket: &Path) -> Program {
        Program::start_at(&format!("unix://{}", socket.display()), [])
    }

    fn start_at<const N: usize>(address: &str, environment: [(&str, &str); N]) -> Program {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--ignored", "--exact", "program", "--nocapture"])
            .env("EXTENSION_ADDRESS", address)
            .envs(environment)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Program { child, stderr }
    }

    fn listening(socket: &Path) -> Program {
        let mut program = Program::start(socket);
        program.line("listening on unix://");
        program
    }

    /// Reads stderr to a line that has a text.
    fn line(&mut self, text: &str) -> String {
        let mut read = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "no line has {text}: {read}");
            if line.contains(text) {
                return line;
            }
            read += &line;
        }
    }

    /// Reads the log line of a call.
    fn logged(&mut self, call_id: &str) -> Value {
        serde_json::from_str(&self.line(&format!("\"call_id\":\"{call_id}\""))).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The trace of the caller of all calls.
const TRACE: &str = "0123456789abcdef0123456789abcdef";

/// Calls a method with one message. The id of the call is c1.
async fn call<A: Message + Default>(
    socket: &Path,
    path: &str,
    request: impl Message,
) -> std::result::Result<A, Status> {
    call_over(UnixStream::connect(socket).await.unwrap(), path, request, "30S", "c1").await.unwrap()
}

/// Calls a method over a connection within a time as gRPC writes it, or returns the error of the connection.
async fn call_over<A: Message + Default>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
    request: impl Message,
    timeout: &str,
    id: &str,
) -> std::result::Result<std::result::Result<A, Status>, h2::Error> {
    let (client, connection) = h2::client::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let head = http::Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("hookgate-call-id", id)
        .header("grpc-timeout", timeout)
        .header("traceparent", format!("00-{TRACE}-0123456789abcdef-01"))
        .body(())
        .unwrap();
    let (response, mut body) = client.ready().await?.send_request(head, false)?;
    let message = request.encode_to_vec();
    let length = (message.len() as u32).to_be_bytes();
    let sent = body.send_data(Bytes::from([&[0], &length[..], &message].concat()), true);

    let (head, mut body) = match response.await {
        Ok(response) => response.into_parts(), // also of a call that the server refuses before it has the message
        Err(e) => return Err(sent.err().unwrap_or(e)),
    };
    let mut received = Vec::new();
    while let Some(data) = body.data().await {
        received.extend(data?);
    }
    let trailers = body.trailers().await?.unwrap_or(head.headers); // an error may have one frame of headers
    connection.abort();
    let status = Status::from_header_map(&trailers).expect("a status");
    Ok(if status.code() == Code::Ok { Ok(A::decode(&received[5..]).unwrap()) } else { Err(status) })
}

async fn create(socket: &Path, handler: &str) -> BeforeClusterCreateResponse {
    let request = BeforeClusterCreateRequest { handler: handler.into(), ..Default::default() };
    call(socket, CREATE, request).await.unwrap()
}

#[tokio::test]
async fn panics_are_failures_whose_text_is_in_the_log() {
    let folder = Folder::new();
    let mut program = Program::listening(&folder.socket());
    let response = create(&folder.socket(), "broken").await;
    assert_eq!(response.status, ResponseStatus::Failure as i32);
    assert_eq!(
        response.message,
        "handler \"broken\": internal error (panic); search the log of the extension for the call's id"
    );
    let line = program.logged("c1");
    assert_eq!((&line["kind"], &line["error"]), (&"Internal".into(), &"panic: secret".into()));
}

#[tokio::test]
async fn lines_are_those_of_all_languages() {
    let cases: Map<String, Value> = serde_json::from_str(include_str!("../../testdata/logs.json")).unwrap();
    for environment in [("X", "x"), (SUBSCRIBED, "yes")] {
        let folder = Folder::new();
        let address = format!("unix://{}", folder.socket().display());
        let mut program = Program::start_at(&address, [environment]);
        let listening = program.line("listening on");
        for (name, case) in &cases {
            match name.as_str() {
                "listening" => {}
                "BeforeClusterDelete" => {
                    // The program has a handler of it, but none of BeforeClusterUpgrade.
                    let path = CREATE.replace("BeforeClusterCreate", "BeforeClusterUpgrade");
                    let request = BeforeClusterUpgradeRequest::default();
                    let _ = call::<BeforeClusterUpgradeResponse>(&folder.socket(), &path, request).await;
                }
                "DiscoverInfrastructure" => {
                    let path = "/hookgate.infrastructure.v1alpha1.DiscoveryService/DiscoverInfrastructure";
                    let request = DiscoverInfrastructureRequest::default();
                    let _ = call::<DiscoverInfrastructureResponse>(&folder.socket(), path, request).await;
                }
                handler => {
                    let request = BeforeClusterCreateRequest { handler: handler.into(), ..Default::default() };
                    let _ = call::<BeforeClusterCreateResponse>(&folder.socket(), CREATE, request).await;
                }
            }
            let text = match name.as_str() {
                "listening" => listening.clone(),
                _ if case["line"]["level"] == "DEBUG" && environment.0 != SUBSCRIBED => continue, // not written
                _ => program.line("\"call_id\":\"c1\"").replace("BeforeClusterUpgrade", "BeforeClusterDelete"),
            };
            let mut line: Map<String, Value> = serde_json::from_str(&text).unwrap();
            for other in case["others"].as_array().unwrap().iter().chain([&json!("time")]) {
                let value = line.remove(other.as_str().unwrap());
                assert!(value.is_some() || other == "stack", "{name}: no {other}: {text}"); // errors of Rust have none
            }
            assert_eq!(Value::Object(line), case["line"], "{name}");
        }
    }
}

#[tokio::test]
async fn lines_of_calls_without_an_id_have_none() {
    let folder = Folder::new();
    let mut program = Program::listening(&folder.socket());
    let request = BeforeClusterCreateRequest { handler: "refusing".into(), ..Default::default() };
    let stream = UnixStream::connect(folder.socket()).await.unwrap();
    let _: BeforeClusterCreateResponse = call_over(stream, CREATE, request, "30S", "").await.unwrap().unwrap();
    let line: Value = serde_json::from_str(&program.line("call failed")).unwrap();
    assert_eq!((&line["error"], line.get("call_id")), (&"no quota".into(), None));
}

/// Runs openssl in a folder.
fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Writes a self-signed certificate, and its key.
fn issue(folder: &Path, name: &str) {
    openssl(
        folder,
        &format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={name} -addext \
             basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost -keyout {name}.key -out {name}.crt"
        ),
    );
}

/// Puts the certificate and the key of these names where the server reads them.
fn install(folder: &Path, certificate: &str, key: &str) {
    for (from, to) in [(format!("{certificate}.crt"), "tls.crt"), (format!("{key}.key"), "tls.key")] {
        fs::copy(folder.join(from), folder.join("new")).unwrap();
        fs::rename(folder.join("new"), folder.join(to)).unwrap();
    }
}

/// Reports whether a call succeeds, from a caller that trusts one certificate and has perhaps another.
async fn secured(folder: &Path, address: &str, trusts: &str, own: Option<&str>) -> bool {
    let certificate = |name: &str| CertificateDer::from_pem_file(folder.join(format!("{name}.crt"))).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate(trusts)).unwrap();
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let key = PrivateKeyDer::from_pem_file(folder.join(format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(vec![certificate(name)], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(std::sync::Arc::new(config));
    let Ok(stream) = connector.connect("localhost".try_into().unwrap(), stream).await else { return false };
    let request = BeforeClusterCreateRequest { handler: "done".into(), ..Default::default() };
    match call_over::<BeforeClusterCreateResponse>(stream, CREATE, request, "30S", "c1").await {
        Ok(answer) => answer.unwrap().status == ResponseStatus::Success as i32,
        Err(_) => false,
    }
}

/// Starts a program with the certificates of a folder, and returns its address.
fn secure(folder: &Path) -> (Program, String) {
    let mut program = Program::start_at("127.0.0.1:0", [(CERTIFICATES, folder.to_str().unwrap())]);
    let line: Value = serde_json::from_str(&program.line("listening on 127.0.0.1:")).unwrap();
    (program, line["address"].as_str().unwrap().into())
}

#[tokio::test]
async fn certificates_are_read_again_and_broken_ones_are_not_used() {
    let Folder(folder) = &Folder::new();
    issue(folder, "one");
    issue(folder, "two");
    install(folder, "one", "one");
    let (mut program, address) = secure(folder);
    assert!(secured(folder, &address, "one", None).await);
    assert!(!secured(folder, &address, "two", None).await);
    install(folder, "two", "one");
    program.line("certificate refused: what was read last stays in use");
    assert!(secured(folder, &address, "one", None).await);
    install(folder, "two", "two");
    program.line("certificate replaced");
    assert!(secured(folder, &address, "two", None).await);
    assert!(!secured(folder, &address, "one", None).await);
    assert!(TcpStream::connect(&address).await.is_ok()); // a client that says nothing keeps nobody else from calling
    assert!(secured(folder, &address, "two", None).await);

    fs::write(folder.join("tls.key"), "broken").unwrap();
    let mut broken = Program::start_at("127.0.0.1:0", [(CERTIFICATES, folder.to_str().unwrap())]);
    broken.line("tls.key are not a certificate and its key, in PEM and without a password");
    fs::remove_file(folder.join("tls.key")).unwrap();
    let mut missing = Program::start_at("127.0.0.1:0", [(CERTIFICATES, folder.to_str().unwrap())]);
    missing.line("tls.key: No such file");
}

#[tokio::test]
async fn callers_show_certificates() {
    let Folder(folder) = &Folder::new();
    for name in ["server", "client", "other"] {
        issue(folder, name);
    }
    install(folder, "server", "server");
    fs::copy(folder.join("client.crt"), folder.join("ca.crt")).unwrap();
    let (_program, address) = secure(folder);
    assert!(secured(folder, &address, "server", Some("client")).await);
    assert!(!secured(folder, &address, "server", Some("other")).await);
    assert!(!secured(folder, &address, "server", None).await);
}

#[cfg(feature = "opentelemetry")]
#[tokio::test]
async fn the_trace_of_the_caller_goes_on() {
    let folder = Folder::new();
    let _program = Program::listening(&folder.socket());
    assert_eq!(create(&folder.socket(), "traced").await.message, TRACE);
}

#[tokio::test]
async fn reflection_lists_what_is_served() {
    let folder = Folder::new();
    let _program = Program::listening(&folder.socket());
    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let response: ServerReflectionResponse = call(&folder.socket(), path, request).await.unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = response.message_response else {
        panic!("{response:?}");
    };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "hookgate.hooks.v1alpha1.DiscoveryService",
            "hookgate.hooks.v1alpha1.LifecycleHooksService"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_bounded_and_end_before_the_server() {
    let folder = Folder::new();
    let socket = folder.socket();
    let mut program = Program::listening(&socket);
    let slow = tokio::spawn(async move {
        call::<BeforeClusterDeleteResponse>(&socket, DELETE, BeforeClusterDeleteRequest::default()).await
    });
    program.line("entered");
    let request = BeforeClusterCreateRequest::default();
    let status = call::<BeforeClusterCreateResponse>(&folder.socket(), CREATE, request).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::ResourceExhausted, "too many calls are in flight; try again later")
    );
    let line = program.logged("c1");
    assert_eq!((&line["kind"], &line["code"]), (&"Overloaded".into(), &"RESOURCE_EXHAUSTED".into()));
    assert!(Command::new("kill").arg(program.child.id().to_string()).status().unwrap().success());
    assert_eq!(slow.await.unwrap().unwrap().status, ResponseStatus::Success as i32);
    assert!(program.child.wait().unwrap().success());
    assert!(!folder.socket().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_callers_do_not_wait_are_logged() {
    let folder = Folder::new();
    let mut program = Program::listening(&folder.socket());
    let stream = UnixStream::connect(folder.socket()).await.unwrap();
    let late =
        call_over::<BeforeClusterDeleteResponse>(stream, DELETE, BeforeClusterDeleteRequest::default(), "300m", "c1");
    assert!(late.await.unwrap().is_err());
    let line = program.logged("c1");
    assert_eq!((&line["kind"], &line["code"]), (&"Timeout".into(), &"DEADLINE_EXCEEDED".into()));

    let socket = folder.socket();
    let left = tokio::spawn(async move {
        call::<BeforeClusterDeleteResponse>(&socket, DELETE, BeforeClusterDeleteRequest::default()).await
    });
    program.line("entered");
    left.abort();
    let line = program.logged("c1");
    assert_eq!((&line["kind"], &line["code"]), (&"Canceled".into(), &"CANCELLED".into()));
}

#[tokio::test]
async fn stale_sockets_are_replaced_and_live_ones_are_not() {
    let folder = Folder::new();
    let mut killed = Program::listening(&folder.socket());
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(folder.socket().exists());

    let _program = Program::listening(&folder.socket());
    let mode = fs::metadata(folder.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    Program::start(&folder.socket()).line("x.sock: another server listens there");
    create(&folder.socket(), "refusing").await;
}

#[tokio::test]
async fn files_that_are_no_sockets_are_kept() {
    let folder = Folder::new();
    fs::write(folder.socket(), "precious").unwrap();
    Program::start(&folder.socket()).line("x.sock: there is a file that is not a socket");
    assert_eq!(fs::read_to_string(folder.socket()).unwrap(), "precious");
}
