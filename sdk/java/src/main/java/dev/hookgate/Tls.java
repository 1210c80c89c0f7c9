// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import io.grpc.ServerCredentials;
import io.grpc.TlsServerCredentials;
import io.grpc.util.AdvancedTlsX509KeyManager;
import io.grpc.util.AdvancedTlsX509TrustManager;
import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** The files of TLS, looked at every ten seconds. If new ones are broken, gRPC logs it, and the old ones stay. */
final class Tls {
  private static final long PERIOD_SECONDS = 10;

  private final File certificate;
  private final File key;
  private final File clientCa;
  private final ScheduledExecutorService reader = Executors.newSingleThreadScheduledExecutor(task -> {
    var thread = new Thread(task, "tls-files");
    thread.setDaemon(true);
    return thread;
  });

  Tls(File certificate, File key, File clientCa) {
    this.certificate = certificate;
    this.key = key;
    this.clientCa = clientCa;
  }

  ServerCredentials credentials() throws IOException {
    try {
      var identity = new AdvancedTlsX509KeyManager();
      identity.updateIdentityCredentials(certificate, key, PERIOD_SECONDS, TimeUnit.SECONDS, reader);
      TlsServerCredentials.Builder credentials = TlsServerCredentials.newBuilder().keyManager(identity);
      if (clientCa != null) {
        var trust = AdvancedTlsX509TrustManager.newBuilder()
            .setVerification(AdvancedTlsX509TrustManager.Verification.CERTIFICATE_ONLY_VERIFICATION)
            .build();
        trust.updateTrustCredentials(clientCa, PERIOD_SECONDS, TimeUnit.SECONDS, reader);
        credentials.trustManager(trust).clientAuth(TlsServerCredentials.ClientAuth.REQUIRE);
      }
      return credentials.build();
    } catch (GeneralSecurityException e) {
      throw new IOException("TLS: " + certificate + ", " + key + ": " + e.getMessage(), e);
    }
  }

  void close() {
    reader.shutdownNow();
  }
}
