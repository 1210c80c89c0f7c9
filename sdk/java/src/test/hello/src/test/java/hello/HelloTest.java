// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hello;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.hookgate.Conformance;
import dev.hookgate.Requests;
import dev.hookgate.hooks.v1alpha1.BeforeClusterCreateRequest;
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

  /** Jackson's module for YAML is an application's choice. */
  @Test
  void yamlNeedsItsModule(@TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve("request.yaml"), "{}");
    var thrown = assertThrows(IllegalStateException.class, () -> Requests.read(BeforeClusterCreateRequest.class, file));
    assertTrue(thrown.getMessage().contains("jackson-dataformat-yaml"), thrown.getMessage());
    Path json = Files.writeString(folder.resolve("request.json"), "{\"settings\": {\"a\": \"b\"}}");
    assertEquals("b", Requests.read(BeforeClusterCreateRequest.class, json).getSettingsOrThrow("a"));
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
