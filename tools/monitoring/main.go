// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command monitoring writes the Grafana dashboard of deploy/monitoring to the standard output.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(w io.Writer) error {
	d, err := build()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// source is the data source that the reader of the dashboard chooses.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("$datasource")}

// build returns the dashboard.
func build() (dashboard.Dashboard, error) { //nolint:staticcheck // Grafana before 12 imports nothing newer
	b := dashboard.NewDashboardBuilder("Hookgate") //nolint:staticcheck // as above
	b.Uid("hookgate").
		Description("A gateway between Cluster API and Runtime Extensions: what is up, what is down, who waits.").
		Tags([]string{"hookgate", "cluster-api"}).
		Readonly().
		Time("now-6h", "now").
		Refresh("30s").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(dashboard.NewQueryVariableBuilder("job").Label("Job").Datasource(source).
			Query(dashboard.StringOrMap{String: new("label_values(hookgate_build_info, job)")}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).IncludeAll(true).Multi(true))
	for _, r := range rows {
		b.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			b.WithPanel(p.builder())
		}
	}
	return b.Build()
}

func (p panel) builder() cog.Builder[dashboard.Panel] {
	if p.stat {
		b := stat.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Unit(p.unit).
			Height(4).Span(p.width).GraphMode(common.BigValueGraphModeNone).Thresholds(p.thresholds())
		for i, q := range p.queries {
			b.WithTarget(q.target(i).Instant())
		}
		return b
	}
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Unit(p.unit).
		Height(8).Span(p.width).Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.steps {
		b.LineInterpolation(common.LineInterpolationStepAfter)
	}
	for i, q := range p.queries {
		b.WithTarget(q.target(i).Range())
	}
	return b
}

// thresholds colors a value: green, or red from p.red on.
func (p panel) thresholds() cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: "green"}}
	if p.red > 0 {
		steps = append(steps, dashboard.Threshold{Value: new(p.red), Color: "red"})
	}
	if p.green > 0 {
		steps = []dashboard.Threshold{{Color: "red"}, {Value: new(p.green), Color: "green"}}
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

func (q query) target(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).RefId(string(rune('A' + i))).Expr(q.expr).
		LegendFormat(q.legend)
}
