// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command etcd is etcd's own server, built here so that the tests need no other download than Go modules.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
