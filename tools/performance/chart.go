// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/hookgate/hookgate/test/bench/report"
)

// picture is a finished chart.
type picture struct {
	name string
	svg  []byte
}

// chart has lines over a logarithmic axis.
type chart struct {
	name, title, x, y string
	logY              bool
	lines             []line
}

type line struct {
	name   string
	points []point
}

// point is a sample at x, which is drawn as the median with a bar from the lowest to the highest round.
type point struct {
	x float64
	sample
}

// colors has one for each line. They differ in lightness too, and people who confuse red and green tell them apart
// (https://jfly.uni-koeln.de/color/).
var colors = map[string]color.RGBA{
	report.Direct:  {R: 0x80, G: 0x80, B: 0x80, A: 0xff},
	"ReverseProxy": {R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	"nginx":        {R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	"Envoy":        {R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	report.Gateway: {R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
}

// others are the colors of the lines that have no peer's name.
var others = []color.RGBA{colors[report.Gateway], colors["ReverseProxy"], colors["nginx"], colors["Envoy"]}

// sans is the font of all texts. The library knows its measures; browsers take what they have of the family.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// samples are the values of a line as the library reads them, with errors as distances.
type samples []point

func (s samples) Len() int                    { return len(s) }
func (s samples) XY(i int) (float64, float64) { return s[i].x, s[i].middle }
func (s samples) YError(i int) (float64, float64) {
	return s[i].middle - s[i].low, s[i].high - s[i].middle
}

// draw draws the chart on a white ground, which is readable on pages of any color.
func (c chart) draw() (picture, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	for _, style := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		size := style.Font.Size
		style.Font = sans
		style.Font.Size = max(size, vg.Points(10))
	}
	p.Title.Padding = vg.Points(8)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xdd}, color.Gray{Y: 0xdd}
	p.Add(grid)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.YOffs, p.Legend.XOffs = vg.Points(2), -vg.Points(4), vg.Points(6)
	for i, l := range c.lines {
		if err := l.addTo(p, i, c.logY); err != nil {
			return picture{}, err
		}
	}
	c.frame(p)

	canvas := vgsvg.New(6.5*vg.Inch, 4*vg.Inch)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(8), -vg.Points(20), vg.Points(8), -vg.Points(10)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return picture{}, err
	}
	// Screen readers get the title, and browsers without the font another one without serifs.
	label := fmt.Sprintf(`<svg role="img" aria-label="%s" `, html.EscapeString(c.title))
	const family = "font-family:Liberation Sans"
	text := strings.Replace(b.String(), "<svg ", label, 1)
	text = strings.ReplaceAll(text, family+";", family+",Arial,Helvetica,sans-serif;")
	return picture{name: c.name, svg: []byte(text)}, nil
}

// addTo adds the line, its points, and their bars.
func (l line) addTo(p *plot.Plot, i int, logY bool) error {
	values := samples(l.points)
	if len(values) == 0 {
		return errors.New("a line has no point")
	}
	for _, v := range values {
		if v.x <= 0 || math.IsNaN(v.middle) || logY && v.low <= 0 {
			return fmt.Errorf("%s: the value %v at %v cannot be drawn", l.name, v.sample, v.x)
		}
	}
	drawn, ok := colors[l.name]
	if !ok {
		drawn = others[i%len(others)]
	}
	path, dots, err := plotter.NewLinePoints(values)
	if err != nil {
		return err
	}
	path.Color, path.Width = drawn, vg.Points(1.5)
	dots.Color, dots.Shape, dots.Radius = drawn, draw.CircleGlyph{}, vg.Points(2.5)
	if l.name == report.Gateway {
		path.Width = vg.Points(3)
	}
	bars, err := plotter.NewYErrorBars(values)
	if err != nil {
		return err
	}
	bars.Color, bars.CapWidth = drawn, vg.Points(5)
	p.Add(path, dots, bars)
	p.Legend.Add(l.name, path, dots)
	return nil
}

// frame leaves room above the lines for the legend, and lets an axis that is not logarithmic begin at 0.
func (c chart) frame(p *plot.Plot) {
	rows := float64(len(c.lines))
	if c.logY {
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, 0.09*rows)
		return
	}
	p.Y.Min = 0
	p.Y.Max *= 1 + 0.09*rows
}

// decades marks 1, 2 and 5 in each power of ten with numbers that people read, and the others without.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	few := math.Log10(high/low) < 3.5
	for exponent := math.Floor(math.Log10(low)); exponent <= math.Log10(high); exponent++ {
		for digit := 1.0; digit < 10; digit++ {
			value := digit * math.Pow(10, exponent)
			if value < low*0.999 || value > high*1.001 {
				continue
			}
			tick := plot.Tick{Value: value}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				tick.Label = thousands(value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// thousands formats a number with commas.
func thousands(v float64) string {
	text := strconv.FormatFloat(v, 'g', 6, 64)
	if v < 1000 {
		return text
	}
	text = strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
