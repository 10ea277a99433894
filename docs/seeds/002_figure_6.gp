# gnuplot 002_figure_6.gp makes 002_figure_6.svg.
set terminal svg size 900,600
set output '002_figure_6.svg'
set datafile missing '?'
set title "Figure 6: reads of global memory, each thread a stretch of its own"
set xlabel 'blocks a thread'
set ylabel 'bytes_per_second'
set key left top
set logscale xy
plot '002_figure_6.dat' using 1:2 with linespoints title "4096 threads, GB/s", \
  '002_figure_6.dat' using 1:3 with linespoints title "65536 threads, GB/s", \
  '002_figure_6.dat' using 1:4 with linespoints title "1048576 threads, GB/s"
