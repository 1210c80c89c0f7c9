// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate.example;

import dev.hookgate.Server;

/** A Runtime Extension over gRPC. Hooks has its handlers. */
public final class Main {
  public static void main(String[] args) throws Exception {
    var server = new Server(Hooks.extension());
    if (args.length > 0) {
      server.address(args[0]);
    }
    server.serve();
  }
}
