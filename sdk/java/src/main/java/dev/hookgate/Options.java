// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import dev.hookgate.hooks.v1alpha1.FailurePolicy;

/**
 * What the discovery of a handler states besides its hook.
 *
 * @param name a DNS-1123 label, unique within the extension
 * @param timeoutSeconds how long callers wait for an answer, from 0 to 30
 * @param failurePolicy what callers do with a call that could not be completed
 * @param clusterApiVersion the version of Cluster API's objects that the handler reads; null for that of the extension,
 *     empty for objects as they were sent
 */
public record Options(String name, int timeoutSeconds, FailurePolicy failurePolicy, String clusterApiVersion) {
  /** Returns the defaults: ten seconds, Fail, and the version of the extension. */
  public static Options named(String name) {
    return new Options(name, 10, FailurePolicy.FAILURE_POLICY_FAIL, null);
  }

  /** Returns a copy with another timeout. */
  public Options withTimeoutSeconds(int seconds) {
    return new Options(name, seconds, failurePolicy, clusterApiVersion);
  }

  /** Returns a copy with another failure policy. */
  public Options withFailurePolicy(FailurePolicy policy) {
    return new Options(name, timeoutSeconds, policy, clusterApiVersion);
  }

  /** Returns a copy with another version of objects. */
  public Options withClusterApiVersion(String version) {
    return new Options(name, timeoutSeconds, failurePolicy, version);
  }
}
