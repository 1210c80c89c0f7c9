// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hello;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.hookgate.Conformance;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HelloTest {
  @Test
  void conformance() throws Exception {
    Conformance.check(Main.extension(), "--skip", "answers.quick");
  }

  /** A program of the package listens, and ends well. */
  @Test
  void program(@TempDir Path folder) throws Exception {
    Path log = folder.resolve("log");
    String address = "unix://" + folder.resolve("x.sock");
    Process program = new ProcessBuilder(
        ProcessHandle.current().info().command().orElseThrow(), "-cp", System.getProperty("java.class.path"),
        "hello.Main", address).redirectError(log.toFile()).start();
    try {
      while (!Files.exists(log) || !Files.readString(log).contains("listening on " + address)) {
        assertTrue(program.isAlive(), () -> "it ended: " + log);
        Thread.onSpinWait();
      }
      program.destroy(); // SIGTERM
      assertTrue(program.waitFor(30, TimeUnit.SECONDS));
      assertEquals(0, program.exitValue());
    } finally {
      program.destroyForcibly();
    }
  }
}
