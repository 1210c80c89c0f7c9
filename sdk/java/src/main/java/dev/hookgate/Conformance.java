// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The conformance test, to be one test of the application's own. */
public final class Conformance {
  /**
   * Serves an extension on a Unix socket and checks it with {@code hookgate check}: the program that HOOKGATE_BIN
   * names, or the one in PATH.
   *
   * @param arguments further ones of the command
   * @throws AssertionError with what the command printed, if a rule is broken
   */
  public static void check(Extension extension, String... arguments) throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory("hookgate");
    Path socket = folder.resolve("x.sock");
    var server = new Server(extension).address("unix://" + socket);
    server.start();
    try {
      String program = System.getenv().getOrDefault("HOOKGATE_BIN", "hookgate");
      List<String> command = new ArrayList<>(List.of(program, "check"));
      command.addAll(List.of(arguments));
      command.add("unix://" + socket);
      Process process;
      try {
        process = new ProcessBuilder(command).redirectErrorStream(true).start();
      } catch (IOException e) {
        throw new AssertionError("run " + program + ": " + e.getMessage() + ": install hookgate from"
            + " https://github.com/hookgate/hookgate/releases, and put it into PATH or name it in HOOKGATE_BIN", e);
      }
      String printed = new String(process.getInputStream().readAllBytes());
      if (process.waitFor() != 0) {
        throw new AssertionError("hookgate check: exit status " + process.exitValue() + "\n" + printed);
      }
    } finally {
      server.stop();
      Files.deleteIfExists(socket);
      Files.delete(folder);
    }
  }

  private Conformance() {}
}
