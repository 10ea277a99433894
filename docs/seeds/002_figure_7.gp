# gnuplot 002_figure_7.gp makes 002_figure_7.svg.
set terminal svg size 900,600
set output '002_figure_7.svg'
set datafile missing '?'
set title "Figure 7: the same messages in seven orders"
set xlabel 'payload'
set ylabel 'bits_per_second'
set key left top
set xtics rotate by -20
set yrange [0:*]
plot '002_figure_7.dat' using 2:xtic(1) with linespoints title "CPU, all threads, as ordered, Mbit/s", \
  '002_figure_7.dat' using 3:xtic(1) with linespoints title "CPU, all threads, Nacre's order, Mbit/s", \
  '002_figure_7.dat' using 4:xtic(1) with linespoints title "GPU with copies, Nacre's order, Mbit/s"
