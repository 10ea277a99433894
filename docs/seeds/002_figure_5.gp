# gnuplot 002_figure_5.gp makes 002_figure_5.svg.
set encoding utf8
set terminal svg size 1200,600 noenhanced font 'sans,11' background 'white'
set output '002_figure_5.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "messages"
set format x '%.0f'
set xtics rotate by -40
set multiplot layout 2,3 title "Figure 5: payloads of messages in a serial mode (CBC encryption)"
unset key
set title "blocks a message: 16"
set format y '%.0s %cbit/s'
plot '002_figure_5.dat' index 0 using 2:5 with linespoints lt 1 title "plain code (tables), one thread", \
  '002_figure_5.dat' index 0 using 2:6 with linespoints lt 2 title "plain code (tables), all threads", \
  '002_figure_5.dat' index 0 using 2:7 with linespoints lt 3 title "library, one thread", \
  '002_figure_5.dat' index 0 using 2:8 with linespoints lt 4 title "library, all threads", \
  '002_figure_5.dat' index 0 using 2:9 with linespoints lt 5 title "GPU kernels", \
  '002_figure_5.dat' index 0 using 2:10 with linespoints lt 6 title "GPU with copies"
set title "blocks a message: 128"
set format y '%.0s %cbit/s'
plot '002_figure_5.dat' index 1 using 2:5 with linespoints lt 1 title "plain code (tables), one thread", \
  '002_figure_5.dat' index 1 using 2:6 with linespoints lt 2 title "plain code (tables), all threads", \
  '002_figure_5.dat' index 1 using 2:7 with linespoints lt 3 title "library, one thread", \
  '002_figure_5.dat' index 1 using 2:8 with linespoints lt 4 title "library, all threads", \
  '002_figure_5.dat' index 1 using 2:9 with linespoints lt 5 title "GPU kernels", \
  '002_figure_5.dat' index 1 using 2:10 with linespoints lt 6 title "GPU with copies"
set title "blocks a message: 512"
set format y '%.0s %cbit/s'
plot '002_figure_5.dat' index 2 using 2:5 with linespoints lt 1 title "plain code (tables), one thread", \
  '002_figure_5.dat' index 2 using 2:6 with linespoints lt 2 title "plain code (tables), all threads", \
  '002_figure_5.dat' index 2 using 2:7 with linespoints lt 3 title "library, one thread", \
  '002_figure_5.dat' index 2 using 2:8 with linespoints lt 4 title "library, all threads", \
  '002_figure_5.dat' index 2 using 2:9 with linespoints lt 5 title "GPU kernels", \
  '002_figure_5.dat' index 2 using 2:10 with linespoints lt 6 title "GPU with copies"
set title "blocks a message: 2,048"
set format y '%.0s %cbit/s'
plot '002_figure_5.dat' index 3 using 2:5 with linespoints lt 1 title "plain code (tables), one thread", \
  '002_figure_5.dat' index 3 using 2:6 with linespoints lt 2 title "plain code (tables), all threads", \
  '002_figure_5.dat' index 3 using 2:7 with linespoints lt 3 title "library, one thread", \
  '002_figure_5.dat' index 3 using 2:8 with linespoints lt 4 title "library, all threads", \
  '002_figure_5.dat' index 3 using 2:9 with linespoints lt 5 title "GPU kernels", \
  '002_figure_5.dat' index 3 using 2:10 with linespoints lt 6 title "GPU with copies"
set title "blocks a message: 16,384"
set format y '%.0s %cbit/s'
plot '002_figure_5.dat' index 4 using 2:5 with linespoints lt 1 title "plain code (tables), one thread", \
  '002_figure_5.dat' index 4 using 2:6 with linespoints lt 2 title "plain code (tables), all threads", \
  '002_figure_5.dat' index 4 using 2:7 with linespoints lt 3 title "library, one thread", \
  '002_figure_5.dat' index 4 using 2:8 with linespoints lt 4 title "library, all threads", \
  '002_figure_5.dat' index 4 using 2:9 with linespoints lt 5 title "GPU kernels", \
  '002_figure_5.dat' index 4 using 2:10 with linespoints lt 6 title "GPU with copies"
unset title
unset xlabel
unset logscale
unset tics
unset grid
unset border
set xrange [0:1]
set yrange [0:1]
set key center center
plot NaN with linespoints lt 1 title "plain code (tables), one thread", \
  NaN with linespoints lt 2 title "plain code (tables), all threads", \
  NaN with linespoints lt 3 title "library, one thread", \
  NaN with linespoints lt 4 title "library, all threads", \
  NaN with linespoints lt 5 title "GPU kernels", \
  NaN with linespoints lt 6 title "GPU with copies"
unset multiplot
