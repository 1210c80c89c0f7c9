// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hookrule compiles HookRules, and answers hooks by them: handlers without a server. A Rule answers for a
// registration in process, so that the registry, the chain of links, explanations and metrics treat it like an
// extension.
//
// Each category of hooks has a file with the fields of its rules and the answers that they make.
package hookrule
