// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with what a cluster's own names need: the plugins of its distribution for clouds, other
// servers and tracing are not in it.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() { coremain.Run() }
