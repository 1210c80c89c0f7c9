// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! TLS from files that are read again when they change.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::{interval, timeout},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
    server::TlsStream,
};
use tokio_stream::wrappers::ReceiverStream;

use crate::log;

/// How often files are looked at. They are small, and not every file system has events.
const PERIOD: Duration = Duration::from_secs(2);
/// The size of the largest file.
const FILE_LIMIT: u64 = 1 << 20;
/// How long a client may take to show what it has, and how many may do so at once.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKES: usize = 256;

/// The files of a server's certificate, its key, and the authorities of its callers.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client_ca: Option<PathBuf>,
}

type Contents = Vec<Vec<u8>>;

/// What was last read from the files and could be used.
pub(crate) struct Certificates {
    files: Files,
    contents: Contents,
    refused: String,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Certificates {
    /// Reads the files. The error says what is wrong with them.
    pub(crate) fn read(files: Files) -> Result<Certificates, String> {
        let contents = files.read()?;
        let current = Arc::new(RwLock::new(Arc::new(files.parse(&contents)?)));
        Ok(Certificates { files, contents, refused: String::new(), current })
    }

    /// Returns the connections that a listener accepts, after their handshakes. It ends with what it returns.
    pub(crate) fn accept(mut self, listener: TcpListener) -> ReceiverStream<io::Result<TlsStream<TcpStream>>> {
        let (sender, receiver) = mpsc::channel(1);
        let (current, handshakes) = (self.current.clone(), Arc::new(Semaphore::new(HANDSHAKES)));
        let stopped = sender.clone();
        tokio::spawn(async move {
            let mut ticks = interval(PERIOD);
            loop {
                tokio::select! {
                    () = stopped.closed() => return,
                    _ = ticks.tick() => self.look_again(),
                }
            }
        });
        tokio::spawn(async move {
            loop {
                let Ok(place) = handshakes.clone().acquire_owned().await else { return };
                let accepted = tokio::select! {
                    () = sender.closed() => return,
                    accepted = listener.accept() => accepted,
                };
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(100)).await; // too many files are open
                        continue;
                    }
                };
                let _ = stream.set_nodelay(true);
                let config = current.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Ok(Ok(secured)) = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
                        let _ = sender.send(Ok(secured)).await;
                    }
                    drop(place);
                });
            }
        });
        ReceiverStream::new(receiver)
    }

    /// Uses what the files have now, if it is new and can be used. What cannot is logged once.
    fn look_again(&mut self) {
        let file = self.files.certificate.display().to_string();
        let new = self.files.read().and_then(|contents| {
            let same = contents == self.contents;
            Ok(if same { None } else { Some((self.files.parse(&contents)?, contents)) })
        });
        match new {
            Ok(None) => self.refused.clear(),
            Ok(Some((config, contents))) => {
                *self.current.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(config);
                self.contents = contents;
                self.refused.clear();
                log::certificate(&file, None);
            }
            Err(error) if error != self.refused => {
                log::certificate(&file, Some(&error));
                self.refused = error;
            }
            Err(_) => {}
        }
    }
}

impl Files {
    fn read(&self) -> Result<Contents, String> {
        [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()]
            .into_iter()
            .flatten()
            .map(|f| read(f))
            .collect()
    }

    fn parse(&self, contents: &Contents) -> Result<ServerConfig, String> {
        let pair = |error: &dyn std::fmt::Display| {
            let (certificate, key) = (self.certificate.display(), self.key.display());
            format!("{certificate} and {key} are not a certificate and its key, in PEM and without a password: {error}")
        };
        let chain = certificates(&contents[0]).map_err(|error| pair(&error))?;
        let key = PrivateKeyDer::from_pem_slice(&contents[1]).map_err(|error| pair(&error))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let none = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
                let mut roots = RootCertStore::empty();
                for certificate in certificates(&contents[2]).map_err(|error| none(&error))? {
                    roots.add(certificate).map_err(|error| none(&error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| none(&error))?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| pair(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found =
        CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    if found.is_empty() { Err("it has no certificate in PEM".into()) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_LIMIT).read_to_end(&mut content))
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    Ok(content)
}
