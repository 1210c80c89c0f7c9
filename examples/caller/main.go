// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command caller is the controller of a control plane provider that asks a gateway, with package caller, whether an
// upgrade may begin. reconciler.go has what matters, controlplane.go the kind.
package main

import (
	"flag"
	"log"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hookgate/hookgate/caller"
)

func main() {
	var config caller.Config
	flag.StringVar(&config.URL, "gateway", "", "URL of the gateway: grpcs://HOST:PORT or https://HOST:PORT")
	flag.StringVar(&config.CAFile, "gateway-ca", "", "file with the CA of the gateway")
	flag.StringVar(&config.TokenFile, "gateway-token", "", "file with the token to show to the gateway")
	flag.Parse()
	ctrllog.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	if err := run(config); err != nil {
		log.Fatal(err)
	}
}

func run(config caller.Config) error {
	gateway, err := caller.New(config)
	if err != nil {
		return err
	}
	defer gateway.Close()
	scheme := runtime.NewScheme()
	addToScheme(scheme)
	rest, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(rest, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	r := &reconciler{client: manager.GetClient(), gateway: gateway}
	if err := ctrl.NewControllerManagedBy(manager).For(&AcmeControlPlane{}).Complete(r); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
