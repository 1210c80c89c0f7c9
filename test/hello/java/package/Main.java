// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import dev.hookgate.Answer;
import dev.hookgate.Extension;
import dev.hookgate.Server;
import dev.hookgate.hooks.v1alpha1.BeforeClusterUpgradeRequest;

/** An extension with one handler, on the package. */
public final class Main {
  public static void main(String[] args) throws Exception {
    var extension = new Extension().handle(BeforeClusterUpgradeRequest.class, "hello", request -> Answer.done());
    new Server(extension).address(args[0]).serve();
  }
}
