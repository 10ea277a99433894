# gnuplot 002_figure_4.gp makes 002_figure_4.svg.
set terminal svg size 900,600
set output '002_figure_4.svg'
set datafile missing '?'
set title "Figure 4: payloads of messages in a parallel mode (CTR)"
set xlabel 'messages'
set ylabel 'bits_per_second'
set key left top
set logscale xy
plot '002_figure_4.dat' using 2:7 with linespoints title "one key, kernels, Mbit/s", \
  '002_figure_4.dat' using 2:8 with linespoints title "one key with copies, Mbit/s", \
  '002_figure_4.dat' using 2:11 with linespoints title "a key each, kernels, Mbit/s", \
  '002_figure_4.dat' using 2:12 with linespoints title "a key each with copies, Mbit/s", \
  '002_figure_4.dat' using 2:15 with linespoints title "library, all threads, Mbit/s"
