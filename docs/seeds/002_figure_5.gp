# gnuplot 002_figure_5.gp makes 002_figure_5.svg.
set terminal svg size 900,600
set output '002_figure_5.svg'
set datafile missing '?'
set title "Figure 5: payloads of messages in a serial mode (CBC encryption)"
set xlabel 'messages'
set ylabel 'bits_per_second'
set key left top
set logscale xy
plot '002_figure_5.dat' using 2:4 with linespoints title "plain code (tables), one thread, Mbit/s", \
  '002_figure_5.dat' using 2:5 with linespoints title "plain code, all threads, Mbit/s", \
  '002_figure_5.dat' using 2:6 with linespoints title "library, one thread, Mbit/s", \
  '002_figure_5.dat' using 2:7 with linespoints title "library, all threads, Mbit/s", \
  '002_figure_5.dat' using 2:8 with linespoints title "GPU kernels, Mbit/s", \
  '002_figure_5.dat' using 2:9 with linespoints title "GPU with copies, Mbit/s"
