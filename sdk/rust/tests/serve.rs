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

use hookgate::{Extension, Result, done, hooks::v1alpha1::*};
use prost::{Message, bytes::Bytes};
use serde_json::Value;
use tokio::{
    net::UnixStream,
    signal::unix::{SignalKind, signal},
};
use tonic::{Code, Status, codegen::http};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};

const CREATE: &str = "/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate";
const DELETE: &str = "/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterDelete";

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
    let failure = BeforeClusterCreateResponse { status: ResponseStatus::Failure as i32, ..Default::default() };
    Extension::new()
        .handle("broken", async |_: BeforeClusterCreateRequest| -> Result { panic!("secret") })
        .handle("refusing", move |_: BeforeClusterCreateRequest| std::future::ready(Ok(failure.clone())))
        .handle("slow", slow)
        .concurrency(1)
        .serve()
        .await
        .unwrap();
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
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--ignored", "--exact", "program", "--nocapture"])
            .env("EXTENSION_ADDRESS", format!("unix://{}", socket.display()))
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
        serde_json::from_str(&self.line(&format!("\"callID\":\"{call_id}\""))).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls a method with one message. The id of the call is c1.
async fn call<A: Message + Default>(
    socket: &Path,
    path: &str,
    request: impl Message,
) -> std::result::Result<A, Status> {
    let (client, connection) = h2::client::handshake(UnixStream::connect(socket).await.unwrap()).await.unwrap();
    let connection = tokio::spawn(connection);
    let head = http::Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("hookgate-call-id", "c1")
        .body(())
        .unwrap();
    let (response, mut body) = client.ready().await.unwrap().send_request(head, false).unwrap();
    let message = request.encode_to_vec();
    let length = (message.len() as u32).to_be_bytes();
    body.send_data(Bytes::from([&[0], &length[..], &message].concat()), true).unwrap();

    let (head, mut body) = response.await.unwrap().into_parts();
    let mut received = Vec::new();
    while let Some(data) = body.data().await {
        received.extend(data.unwrap());
    }
    let trailers = body.trailers().await.unwrap().unwrap_or(head.headers); // an error may have one frame of headers
    connection.abort();
    let status = Status::from_header_map(&trailers).expect("a status");
    if status.code() == Code::Ok { Ok(A::decode(&received[5..]).unwrap()) } else { Err(status) }
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
        "handler \"broken\": internal error (panic); the log of the extension has it under the call's id"
    );
    let line = program.logged("c1");
    assert_eq!(
        (&line["level"], &line["message"], &line["hook"], &line["handler"], &line["outcome"]),
        (&"error".into(), &"panic: secret".into(), &"BeforeClusterCreate".into(), &"broken".into(), &"error".into())
    );
}

#[tokio::test]
async fn responses_that_are_failures_are_logged() {
    let folder = Folder::new();
    let mut program = Program::listening(&folder.socket());
    create(&folder.socket(), "refusing").await;
    assert_eq!(program.logged("c1")["outcome"], "Failure");
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
    assert!(Command::new("kill").arg(program.child.id().to_string()).status().unwrap().success());
    assert_eq!(slow.await.unwrap().unwrap().status, ResponseStatus::Success as i32);
    assert!(program.child.wait().unwrap().success());
    assert!(!folder.socket().exists());
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
